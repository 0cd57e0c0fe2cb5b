package cli

import (
	"io"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"

	"github.com/rwproxy/rwproxy/internal/config"
)

// Log keys.
const (
	keyAddress     = "address"
	keyHTTPAddress = "http_address"
	keyPid         = "pid"
	keyPostgres    = "postgres"
	keyUpstream    = "upstream"
	keyVersion     = "version"
)

// newLogger returns a logger that writes to w: lines for people on a terminal,
// JSON for programs otherwise.
func newLogger(w io.Writer, level zapcore.Level, format config.LogFormat) *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339TimeEncoder
	encoding.TimeKey = "time"
	encoder := zapcore.NewJSONEncoder(encoding)
	if format == config.LogConsole || format == config.LogAuto && isTerminal(w) {
		encoding.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(encoding)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level))
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
