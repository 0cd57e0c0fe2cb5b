package console

import "encoding/json"

// The types of the Databricks pipelines API, with those of its fields that mean
// something here. Times are milliseconds since 1970, or RFC 3339 in UTC with
// milliseconds, as that API has them.

// startUpdateRequest is the body of POST …/updates.
type startUpdateRequest struct {
	cause                    string
	fullRefresh              bool
	fullRefreshSelection     []string
	refreshSelection         []string
	replaceWhereOverrides    []overrideRequest
	validateOnly             bool
	resetCheckpointSelection []string
	parameters               map[string]string
	rewindSpec               json.RawMessage
}

type overrideRequest struct {
	FlowName          string `json:"flow_name"`
	PredicateOverride string `json:"predicate_override"`
}

type startUpdateResponse struct {
	UpdateID string `json:"update_id"`
}

type getUpdateResponse struct {
	Update updateInfo `json:"update"`
}

type listUpdatesResponse struct {
	Updates []updateInfo `json:"updates"`
	pageTokens
}

// pageTokens lead to the neighbours of a page.
type pageTokens struct {
	Next     string `json:"next_page_token,omitempty"`
	Previous string `json:"prev_page_token,omitempty"`
}

type updateInfo struct {
	PipelineID           string        `json:"pipeline_id"`
	UpdateID             string        `json:"update_id"`
	Config               *pipelineSpec `json:"config,omitempty"` // not in lists
	Cause                string        `json:"cause"`
	State                string        `json:"state"`
	Mode                 string        `json:"mode"`
	CreationTime         int64         `json:"creation_time"`
	FullRefresh          bool          `json:"full_refresh"`
	RefreshSelection     []string      `json:"refresh_selection,omitempty"`
	FullRefreshSelection []string      `json:"full_refresh_selection,omitempty"`
	ValidateOnly         bool          `json:"validate_only"`
	Error                string        `json:"error,omitempty"` // not in the SDK's type
}

type updateStateInfo struct {
	UpdateID     string `json:"update_id"`
	State        string `json:"state"`
	CreationTime string `json:"creation_time"`
}

type pipelineSpec struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Catalog    string `json:"catalog"`
	Continuous bool   `json:"continuous"`
}

type getPipelineResponse struct {
	pipelineStateInfo
	LastModified int64        `json:"last_modified,omitempty"`
	RunAs        string       `json:"run_as_user_name"`
	Spec         pipelineSpec `json:"spec"`
}

type pipelineStateInfo struct {
	PipelineID    string            `json:"pipeline_id"`
	Name          string            `json:"name"`
	State         string            `json:"state"`
	Health        string            `json:"health"`
	Creator       string            `json:"creator_user_name"`
	LatestUpdates []updateStateInfo `json:"latest_updates,omitempty"`
}

type listPipelinesResponse struct {
	Statuses []pipelineStateInfo `json:"statuses"`
	pageTokens
}

type listEventsResponse struct {
	Events []pipelineEvent `json:"events"`
	pageTokens
}

type pipelineEvent struct {
	ID            string                     `json:"id"`
	Sequence      sequencing                 `json:"sequence"`
	Origin        map[string]json.RawMessage `json:"origin"`
	Timestamp     string                     `json:"timestamp"`
	Message       string                     `json:"message"`
	Level         string                     `json:"level"`
	MaturityLevel string                     `json:"maturity_level"`
	Error         json.RawMessage            `json:"error,omitempty"`
	EventType     string                     `json:"event_type"`
	// Details are not in the SDK's type, but in its event log.
	Details json.RawMessage `json:"details"`
}

type sequencing struct {
	ControlPlane int64 `json:"control_plane_seq_no"`
}

// stopResponse is the empty object.
type stopResponse struct{}
