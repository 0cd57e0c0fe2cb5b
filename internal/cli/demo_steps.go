package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/rwproxy/rwproxy/internal/demo"
)

// demonstrate runs the worked examples through the proxy.
func demonstrate(ctx context.Context, i *instance, out io.Writer) error {
	return demo.Run(ctx, out, i.url("postgres").String())
}

// sayHowToConnect tells the user of a demo that stays how to go on.
func sayHowToConnect(i *instance, out io.Writer) {
	fmt.Fprintf(out, `
The proxy is still running. The tables are in schemas example_1 to example_4, the
flows in view rwproxy.flows, what the refreshes did in view rwproxy.refreshes. Connect
with the line below; interrupt the demo to end it.

  psql %q

`, i.url("postgres").Redacted())
}
