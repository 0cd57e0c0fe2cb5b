package cli

import (
	"context"
	"fmt"
	"io"
)

// demonstrate is the demo that the program shows.
func demonstrate(_ context.Context, i *instance, out io.Writer) error {
	_, err := fmt.Fprintf(out, "rwproxy is running. Connect with:\n\n  psql %q\n\n", i.url("postgres").Redacted())
	return err
}
