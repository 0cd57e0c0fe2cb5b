package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/rwproxy/rwproxy/internal/demo"
)

// demonstrate runs the worked examples through the proxy and says how to go
// on.
func demonstrate(ctx context.Context, i *instance, out io.Writer) error {
	url := i.url("postgres")
	if err := demo.Run(ctx, out, url.String()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, `
That was all. The tables are in schemas example_1 to example_4, the flows in
view rwproxy.flows, what the refreshes did in view rwproxy.refreshes. Connect with:

  psql %q

`, url.Redacted())
	return err
}
