package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// session is a connection to Postgres whose backend's CPU time can be read.
type session struct {
	conn    *pgconn.PgConn
	backend int // its process ID
}

// spent is what a statement took.
type spent struct {
	cpu  time.Duration // of the backend
	wall time.Duration
}

func openSession(ctx context.Context, t *target) (*session, error) {
	conn, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn}
	rows, err := s.query(ctx, "select pg_backend_pid()")
	if err == nil {
		s.backend, err = strconv.Atoi(rows[0][0])
	}
	if err != nil {
		conn.Close(ctx)
		return nil, err
	}
	return s, nil
}

func (s *session) run(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		if _, err := s.conn.Exec(ctx, sql).ReadAll(); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// query returns the rows of one statement as text.
func (s *session) query(ctx context.Context, sql string) ([][]string, error) {
	results, err := s.conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sql, err)
	}
	var rows [][]string
	for _, row := range results[0].Rows {
		values := make([]string, len(row))
		for i, v := range row {
			values[i] = string(v)
		}
		rows = append(rows, values)
	}
	return rows, nil
}

// number returns the one value of a query.
func (s *session) number(ctx context.Context, sql string) (int64, error) {
	rows, err := s.query(ctx, sql)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(rows[0][0], 10, 64)
}

// timed runs statements, sent together, and returns what they took.
func (s *session) timed(ctx context.Context, sql string) (spent, error) {
	before, err := cpuTime(s.backend)
	if err != nil {
		return spent{}, err
	}
	started := time.Now()
	if err := s.run(ctx, sql); err != nil {
		return spent{}, err
	}
	wall := time.Since(started)
	after, err := cpuTime(s.backend)
	return spent{after - before, wall}, err
}
