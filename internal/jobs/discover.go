package jobs

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

const (
	// discoveryChannel tells the instances that listen in the database of
	// --upstream that another database holds flows now.
	discoveryChannel = "rwproxy_databases"
	// discoveryPause is how often an instance looks for databases that it was
	// not told of: restored ones, say.
	discoveryPause = time.Minute
)

// discover serves every database that holds flows, those made later included.
func (j *Jobs) discover(ctx context.Context) {
	var down outage
	for {
		err := j.discoverUntilLost(ctx, func() {
			if down.over() {
				j.Logger.Info("looking for flows again")
			}
		})
		if ctx.Err() != nil {
			return
		}
		if down.begins(err) {
			j.Logger.Warn("cannot look for databases with flows", because(err))
		}
		if !down.pause(ctx) {
			return
		}
	}
}

// discoverUntilLost returns when its session is lost, or ctx ends.
func (j *Jobs) discoverUntilLost(ctx context.Context, looked func()) error {
	l, err := j.listen(ctx, j.Service.Database(), discoveryChannel)
	if err != nil {
		return err
	}
	defer l.close()
	for {
		var open map[string]bool
		err := l.step(ctx, func(ctx context.Context) (err error) {
			open, err = j.openDatabases(ctx, l)
			return err
		})
		if err != nil {
			return err
		}
		looked()
		j.look(ctx, open)
		if err := l.sleep(ctx, discoveryPause, j.discovery); err != nil {
			return err
		}
	}
}

// openDatabases returns the databases that can be connected to, and has other
// instances look for a new one.
func (j *Jobs) openDatabases(ctx context.Context, s pgsession.Session) (map[string]bool, error) {
	if j.takeAnnouncement() {
		if _, err := s.Exec(ctx, "notify "+discoveryChannel); err != nil {
			return nil, err
		}
	}
	rows, err := s.Query(ctx, `
		select d.datname
		  from pg_catalog.pg_database d
		 where d.datallowconn
		   and not d.datistemplate`)
	open := make(map[string]bool, len(rows))
	for _, r := range rows {
		open[r[0].Text] = true
	}
	return open, err
}

// look begins to serve the databases that hold flows, and ends to serve those
// that are not open any more.
func (j *Jobs) look(ctx context.Context, open map[string]bool) {
	for _, name := range j.unserved(open) {
		has, err := j.holdsFlows(ctx, name)
		switch {
		case ctx.Err() != nil:
			return
		case isGone(pgdiag.Code(err)):
			// It was dropped since the databases were listed.
		case err != nil:
			j.leave(name, err, false)
		case has:
			j.mu.Lock()
			if _, served := j.databases[name]; !served {
				j.serve(name)
			}
			j.mu.Unlock()
		}
	}
}

func (j *Jobs) takeAnnouncement() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	due := j.announce
	j.announce = false
	return due
}

// unserved returns the open databases that are not served, and ends to serve
// those that are not open.
func (j *Jobs) unserved(open map[string]bool) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, d := range j.databases {
		if !open[name] {
			d.end()
		}
	}
	var names []string
	for name := range open {
		if _, served := j.databases[name]; !served {
			names = append(names, name)
		}
	}
	for name := range j.left {
		if !open[name] {
			delete(j.left, name)
		}
	}
	return names
}

// holdsFlows reports whether a database has a schema of rwproxy's name. Whose
// it is, and of which version, is looked at when it is served.
func (j *Jobs) holdsFlows(ctx context.Context, name string) (has bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	err = j.Service.Do(ctx, name, func(s pgsession.Session) error {
		rows, err := s.Query(ctx, "select from pg_catalog.pg_namespace n where n.nspname = 'rwproxy'")
		has = len(rows) > 0
		return err
	})
	return has, err
}

// leaving is why a database is not served.
type leaving struct {
	reason     string // as it was logged
	holdsFlows bool   // as far as can be told
}

// leave notes why a database is not served, and says so once.
func (j *Jobs) leave(name string, why error, holdsFlows bool) {
	now := leaving{pgdiag.Code(why) + why.Error(), holdsFlows}
	j.mu.Lock()
	known := j.left[name].reason == now.reason
	j.left[name] = now
	j.mu.Unlock()
	if !known {
		j.Logger.Warn("database not served", zap.String(keyDatabase, name), because(why))
	}
}

// served forgets that a database was left alone.
func (j *Jobs) served(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.left, name)
}
