package api

// BackupPath answers a GET by who may create backup.edge.bramble.dev with a backup: a
// tar.gz of BackupInfo as backup.json, the database and the authority's files. Who has
// it is an administrator.
//
// RestorePath answers a GET with RestoreStatus; a POST confirms the restore and
// is answered with the same. Errors come as a metav1.Status.
const (
	BackupPath  = "/apis/edge.bramble.dev/v1alpha1/backup"
	RestorePath = "/apis/edge.bramble.dev/v1alpha1/restore"
)

// BackupInfo says what a backup is of.
type BackupInfo struct {
	Epoch   string `json:"epoch"`   // of the database
	Taken   string `json:"taken"`   // RFC 3339, by the server's clock
	Version string `json:"version"` // of Bramble
}

// RestoreStatus says whether a server's database is a restored backup, and
// whether nodes may follow it.
type RestoreStatus struct {
	Epoch     string   `json:"epoch"`
	Follows   []string `json:"follows,omitempty"` // the epochs of which it is a backup, the newest first
	Confirmed bool     `json:"confirmed"`
}
