package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// maxPipelines is how many pipelines a page may have.
const maxPipelines = 100

// latestUpdates is how many updates a pipeline shows.
const latestUpdates = 5

const selectPipeline = `
select pg_catalog.pg_get_userbyid(d.datdba),
       exists (select from rwproxy.updates u where u.state in ('QUEUED', 'RUNNING')),
       (select u.state from rwproxy.updates u
         where u.state not in ('QUEUED', 'RUNNING') order by u.requested_at desc, u.update_id desc limit 1),
       (select pg_catalog.floor(1000 * extract(epoch from pg_catalog.max(f.changed_at))) from rwproxy.flows f)
  from pg_catalog.pg_database d
 where d.datname = pg_catalog.current_database()`

const selectLatestUpdates = `
select u.update_id,
       u.state,
       pg_catalog.to_char(u.requested_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
  from rwproxy.updates u
 order by u.requested_at desc, u.update_id desc
 limit $1::pg_catalog.int4`

// getPipeline is GET …/pipelines/{pipeline_id}.
func (a *api) getPipeline(ctx context.Context, c *caller, r *http.Request) (any, error) {
	s, err := a.open(ctx, c, r.PathValue("pipeline_id"))
	if err != nil {
		return nil, err
	}
	defer s.close()
	return s.pipeline(ctx)
}

func (s *session) spec() pipelineSpec {
	return pipelineSpec{ID: s.id, Name: s.database, Catalog: s.database}
}

func (s *session) pipeline(ctx context.Context) (*getPipelineResponse, error) {
	rows, err := s.Query(ctx, selectPipeline)
	if err != nil {
		return nil, err
	}
	creator, active, ended, changed := rows[0][0], rows[0][1], rows[0][2], rows[0][3]
	answer := &getPipelineResponse{
		pipelineStateInfo: pipelineStateInfo{
			PipelineID: s.id, Name: s.database, State: "IDLE", Health: "HEALTHY", Creator: creator.Text,
		},
		RunAs: s.role,
		Spec:  s.spec(),
	}
	if active.Text == "t" {
		answer.State = "RUNNING"
	}
	if ended.Text == "FAILED" {
		answer.Health = "UNHEALTHY"
	}
	if !changed.Null {
		if answer.LastModified, err = strconv.ParseInt(changed.Text, 10, 64); err != nil {
			return nil, err
		}
	}
	latest, err := s.Query(ctx, selectLatestUpdates, latestUpdates)
	for _, row := range latest {
		answer.LatestUpdates = append(answer.LatestUpdates, updateStateInfo{
			UpdateID: row[0].Text, State: row[1].Text, CreationTime: row[2].Text,
		})
	}
	return answer, err
}

// pipelineFields are the fields of pipelines that a filter may name.
var pipelineFields = map[string]filterField{"name": {operators: []string{"like"}}}

// listPipelines is GET …/pipelines: those of the databases that the caller may
// connect to.
func (a *api) listPipelines(ctx context.Context, c *caller, r *http.Request) (any, error) {
	if err := a.prove(ctx, c); err != nil {
		return nil, err
	}
	limit, err := maxResults(r.URL.Query(), maxPipelines)
	if err != nil {
		return nil, err
	}
	at, err := readPosition(r.URL.Query(), func(key []string) bool { return len(key) == 1 })
	if err != nil {
		return nil, err
	}
	page, tokens, err := a.pipelines(ctx, c, at, limit)
	if err != nil {
		return nil, err
	}
	answer := listPipelinesResponse{Statuses: []pipelineStateInfo{}, pageTokens: tokens}
	for _, database := range page {
		state, err := a.pipelineState(ctx, c, database)
		switch {
		case err != nil:
			return nil, err
		case state != nil:
			answer.Statuses = append(answer.Statuses, *state)
		}
	}
	return answer, nil
}

// pipelines returns the databases of a page, by name.
func (a *api) pipelines(ctx context.Context, c *caller, at position, limit int) (page []string, tokens pageTokens, err error) {
	conditions, err := parseFilter(at.Filter, pipelineFields)
	if err != nil {
		return nil, tokens, err
	}
	order, err := at.ordered("id asc", "id desc", "name asc", "name desc")
	if err != nil {
		return nil, tokens, err
	}
	var like *string
	switch len(conditions) {
	case 0:
	case 1:
		like = &conditions[0].values[0]
	default:
		return nil, tokens, invalid("filter: one condition at most")
	}
	names, err := a.config.Service.ConnectableDatabases(ctx, c.role, like)
	if err != nil {
		return nil, tokens, err
	}
	ids, err := a.catalog.all(ctx)
	if err != nil {
		return nil, tokens, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return ids[name] == "" })
	key := func(name string) string { return name }
	if strings.HasPrefix(order, "id") {
		key = func(name string) string { return ids[name] + name }
	}
	sign := 1
	if strings.HasSuffix(order, "desc") != at.Back {
		sign = -1
	}
	slices.SortFunc(names, func(a, b string) int { return sign * strings.Compare(key(a), key(b)) })
	if at.Key != nil {
		names = slices.DeleteFunc(names, func(name string) bool { return sign*strings.Compare(key(name), at.Key[0]) <= 0 })
	}
	more := len(names) > limit
	page = names[:min(limit, len(names))]
	if at.Back {
		slices.Reverse(page)
	}
	if len(page) > 0 {
		tokens = at.tokens(more, []string{key(page[0])}, []string{key(page[len(page)-1])})
	}
	return page, tokens, nil
}

// pipelineState returns nil for a database that the caller cannot connect to
// after all: by pg_hba.conf, say, or because it has been dropped.
func (a *api) pipelineState(ctx context.Context, c *caller, database string) (*pipelineStateInfo, error) {
	s, err := a.openDatabase(ctx, c, database)
	var known *apiError
	switch failure := asAPIError(err); {
	case err == nil:
	case errors.Is(err, errNoPipeline):
		return nil, nil
	case errors.As(err, &known) && known.status == http.StatusTooManyRequests:
		return nil, err
	case failure.status < http.StatusInternalServerError:
		return nil, nil
	default:
		return nil, err
	}
	defer s.close()
	answer, err := s.pipeline(ctx)
	if err != nil {
		return nil, err
	}
	return &answer.pipelineStateInfo, nil
}
