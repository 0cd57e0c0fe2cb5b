package console

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/rwproxy/rwproxy/flowstate"
)

// A look at every database of the server is worth its cost once in a second, and
// a tenth of the time at most.
const (
	rescanAfter = time.Second
	rescanShare = 10
)

// catalog knows which database has which pipeline. A database's name needs no
// look, and what is found is checked in the caller's session.
type catalog struct {
	service *flowstate.Service

	mu    sync.Mutex
	names map[string][]string // databases by id: one made from another by CREATE DATABASE may have its id
	ids   map[string]string   // the other way round
	next  time.Time           // when it is time for the next look

	scanning sync.Mutex // held by the one that looks
}

func newCatalog(service *flowstate.Service) *catalog {
	return &catalog{service: service, names: map[string][]string{}, ids: map[string]string{}}
}

// cached returns the database of a pipeline that is known already, by its id;
// "" for none.
func (c *catalog) cached(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if names := c.names[id]; len(names) == 1 {
		return names[0]
	}
	return ""
}

// find is cached after a look, if it is time for one.
func (c *catalog) find(ctx context.Context, id string) (string, error) {
	if err := c.refresh(ctx); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch names := c.names[id]; len(names) {
	case 0:
		return "", nil
	case 1:
		return names[0], nil
	}
	return "", &apiError{
		status: http.StatusConflict, code: codeConflict,
		message: "several databases have the pipeline id " + id + ": use the name of one",
	}
}

// all returns the ids of databases, by name; those without a pipeline are left
// out.
func (c *catalog) all(ctx context.Context) (map[string]string, error) {
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids, nil
}

// learn keeps what a session in a database has told.
func (c *catalog) learn(database, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids[database] == "" && len(c.names[id]) == 0 {
		c.ids = maps.Clone(c.ids) // it may have been given away
		c.ids[database], c.names[id] = id, []string{database}
	}
}

// forget makes the next find look.
func (c *catalog) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names, c.ids, c.next = map[string][]string{}, map[string]string{}, time.Time{}
}

// refresh looks at every database of the server, unless that was just done.
func (c *catalog) refresh(ctx context.Context) error {
	c.scanning.Lock()
	defer c.scanning.Unlock()
	c.mu.Lock()
	fresh := time.Now().Before(c.next)
	c.mu.Unlock()
	if fresh {
		return nil
	}
	began := time.Now()
	ids, err := c.service.Pipelines(ctx)
	if err != nil {
		return err
	}
	names := map[string][]string{}
	for database, id := range ids {
		names[id] = append(names[id], database)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids, c.names = ids, names
	c.next = time.Now().Add(max(rescanAfter, rescanShare*time.Since(began)))
	return nil
}

// isUUID reports whether a text is a UUID as Postgres prints one.
func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, r := range text {
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if r != '-' {
				return false
			}
		case r >= '0' && r <= '9' || r >= 'a' && r <= 'f':
		default:
			return false
		}
	}
	return true
}
