package jobs

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/pgsession"
)

const (
	// connectTimeout bounds an attempt to connect.
	connectTimeout = 15 * time.Second
	// stepTimeout bounds what is asked of a server between two sleeps.
	stepTimeout = time.Minute
	// gather is how long, at most, further notifications are waited for after
	// the first. It differs each time: instances that are notified together do
	// not all reach for the same job, and one that comes later sees it run.
	gather = 30 * time.Millisecond
)

// listener is a session that sleeps until it is notified. It is not safe for
// concurrent use.
type listener struct {
	pgsession.Session
	conn     *pgx.Conn
	notified bool // since the last sleep
	// installed is that a notification since the last sleep said so. Nothing
	// else of what anybody may say is kept.
	installed bool
}

// listen opens a session of the service that listens on a channel.
func (j *Jobs) listen(ctx context.Context, database, channel string) (*listener, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	l := &listener{}
	conn, err := j.Service.Connect(ctx, database, func(payload string) {
		l.notified = true
		l.installed = l.installed || payload == installedPayload
	})
	if err != nil {
		return nil, err
	}
	l.conn, l.Session = conn, pgsession.FromPgx(conn)
	if _, err := l.Exec(ctx, "listen "+channel); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// close says goodbye if the server still listens.
func (l *listener) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.conn.Close(ctx) // it is gone either way
}

// step runs do, which does not sleep, within a time that a server that lives
// does not need.
func (l *listener) step(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return do(ctx)
}

// sleep returns when it has been notified since it last returned, when poked
// is sent to, or when the time is over. It forgets the notifications.
func (l *listener) sleep(ctx context.Context, pause time.Duration, poked <-chan struct{}) error {
	if !l.notified {
		if err := l.wait(ctx, pause, poked); err != nil {
			return err
		}
	}
	if l.notified {
		deadline := time.Now().Add(rand.N(gather))
		for time.Now().Before(deadline) {
			if err := l.wait(ctx, time.Until(deadline), nil); err != nil {
				return err
			}
		}
	}
	l.notified = false
	return nil
}

// heardInstalled reports whether a notification said that the schema has been
// brought up to date, and forgets it.
func (l *listener) heardInstalled() bool {
	heard := l.installed
	l.installed = false
	return heard
}

// wait returns after the next notification, or without one.
func (l *listener) wait(ctx context.Context, pause time.Duration, poked <-chan struct{}) error {
	sleeping, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	woken := make(chan struct{})
	go func() {
		defer close(woken)
		select {
		case <-poked:
			cancel()
		case <-sleeping.Done():
		}
	}()
	err := l.conn.PgConn().WaitForNotification(sleeping)
	cancel()
	<-woken // else it might take a poke that nobody has seen
	if l.conn.IsClosed() {
		return pgsession.FromPgxError(err)
	}
	return ctx.Err()
}
