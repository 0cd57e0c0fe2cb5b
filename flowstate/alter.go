package flowstate

import (
	"context"

	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// AddSchedule gives a streaming table its schedule. The errors of it and the
// functions below are those of [Replace]; this one also returns 42710 if the
// table has a schedule.
func AddSchedule(ctx context.Context, s pgsession.Session, target uint32, schedule string) error {
	return alter(ctx, s, target, "add_schedule", func(r *request) { r.text("schedule", schedule) })
}

// AlterSchedule replaces the schedule of a streaming table. It returns 42704 if
// there is none.
func AlterSchedule(ctx context.Context, s pgsession.Session, target uint32, schedule string) error {
	return alter(ctx, s, target, "alter_schedule", func(r *request) { r.text("schedule", schedule) })
}

// DropSchedule takes the schedule of a streaming table away. It returns 42704
// if there is none.
func DropSchedule(ctx context.Context, s pgsession.Session, target uint32) error {
	return alter(ctx, s, target, "drop_schedule", func(*request) {})
}

// SetProperties adds properties to those of a streaming table, or replaces
// them.
func SetProperties(ctx context.Context, s pgsession.Session, target uint32, properties map[string]string) error {
	return alter(ctx, s, target, "set_properties", func(r *request) { r.object("properties", properties) })
}

// UnsetProperties takes properties of a streaming table away. It returns 42K0J
// if one of them is not there, unless ifExists.
func UnsetProperties(ctx context.Context, s pgsession.Session, target uint32, keys []string, ifExists bool) error {
	return alter(ctx, s, target, "unset_properties", func(r *request) { r.list("keys", keys).boolean("if_exists", ifExists) })
}

func alter(ctx context.Context, s pgsession.Session, target uint32, action string, arguments func(*request)) error {
	r := newRequest("alter_table").number("target", int64(target)).text("action", action)
	arguments(r)
	_, err := r.send(ctx, s)
	return err
}
