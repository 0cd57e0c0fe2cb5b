package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
)

// indicator shows how a refresh goes on: in one line of a terminal that
// changes, else in a line for each thing that it does.
type indicator struct {
	out   io.Writer
	table string
	width int                      // of the terminal
	bar   *progressbar.ProgressBar // nil without one
	last  string                   // what it does, as shown last
}

// barFrame is what the bar itself needs of a line: a sign that turns, and
// spaces.
const barFrame = 4

func newIndicator(out io.Writer, table string) *indicator {
	i := &indicator{out: out, table: table, width: terminalWidth(out)}
	if i.width > 0 {
		i.bar = progressbar.NewOptions(-1, // how much there is to do is not known
			progressbar.OptionSetWriter(out),
			progressbar.OptionSetSpinnerChangeInterval(0), // it turns when it is shown
			progressbar.OptionSpinnerType(14),
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionClearOnFinish())
	}
	return i
}

// show shows a refresh that has not ended.
func (i *indicator) show(r refreshRow) {
	doing := strings.ToLower(r.State)
	switch {
	case r.Progress != "":
		doing = r.Progress
	case r.Error != "": // of an attempt that failed
		doing += " again: " + r.Error
	}
	switch {
	case i.bar != nil:
		if r.Progress == "" && r.StartedAt != nil {
			doing += ", " + time.Since(*r.StartedAt).Round(time.Second).String()
		}
		i.bar.Describe(cut(printable(i.table+": "+doing), max(1, i.width-barFrame)))
	case doing != i.last:
		fmt.Fprintln(i.out, printable(i.table+": "+doing))
		i.last = doing
	}
}

// done clears the line.
func (i *indicator) done() {
	if i.bar != nil {
		// What a terminal does not show is no reason to fail.
		_ = i.bar.Finish()
	}
}
