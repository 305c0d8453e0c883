package store

import "time"

// When the log is moved into the file, in bytes of log. A checkpoint costs the
// disk more than a commit, so that it waits for a quiet moment unless the log
// has grown long.
const (
	checkpointIdle = 4 << 20
	checkpointBusy = 8 << 20
	idleAfter      = time.Second
	pageSize       = 4096
)

// checkpoint moves what it can of the log into the file and returns how many
// bytes are left in it. Mode is NOOP (only count), PASSIVE or TRUNCATE.
func (d *database) checkpoint(mode string) (logBytes int64, err error) {
	var busy, pages, moved int64
	err = d.conn.QueryRowContext(d.ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &pages, &moved)
	return (pages - moved) * pageSize, err
}

// checkpointer decides for the writer when to move the log.
type checkpointer struct {
	db    *database
	bytes int64
	timer *time.Timer
}

func newCheckpointer(db *database) *checkpointer {
	t := time.NewTimer(idleAfter)
	t.Stop()
	return &checkpointer{db: db, timer: t}
}

// committed is called after each transaction; it moves a long log at once and
// otherwise has timer fire when a quiet moment has come.
func (c *checkpointer) committed() error {
	var err error
	if c.bytes, err = c.db.checkpoint("NOOP"); err != nil {
		return err
	}
	if c.bytes >= checkpointBusy {
		return c.run()
	}
	if c.bytes >= checkpointIdle {
		c.timer.Reset(idleAfter)
	}
	return nil
}

func (c *checkpointer) run() error {
	c.timer.Stop()
	var err error
	c.bytes, err = c.db.checkpoint("PASSIVE")
	return err
}
