package auth

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"bramble.dev/bramble/server/api"
)

// kubeconfig is the part of kubectl's configuration file that we write.
type kubeconfig struct {
	APIVersion     string             `json:"apiVersion"`
	Kind           string             `json:"kind"`
	Clusters       []namedCluster     `json:"clusters"`
	Contexts       []namedContext     `json:"contexts"`
	CurrentContext string             `json:"current-context"`
	Users          []namedCredentials `json:"users"`
}

type namedCluster struct {
	Name    string `json:"name"`
	Cluster struct {
		Server        string `json:"server"`
		TLSServerName string `json:"tls-server-name"`
		CA            []byte `json:"certificate-authority-data"`
	} `json:"cluster"`
}

type namedContext struct {
	Name    string `json:"name"`
	Context struct {
		Cluster string `json:"cluster"`
		User    string `json:"user"`
	} `json:"context"`
}

type namedCredentials struct {
	Name string `json:"name"`
	User struct {
		Certificate []byte `json:"client-certificate-data"`
		Key         []byte `json:"client-key-data"`
	} `json:"user"`
}

// AdminName is the user of the administrator's kubeconfig.
const AdminName = "bramble-admin"

// WriteAdminKubeconfig makes sure that path is a kubeconfig, readable by this
// user only, with which an administrator reaches the server at url. A file that
// is right, and whose certificate has a third of its life to go, is left alone.
func (a *Authority) WriteAdminKubeconfig(path, url string, clock *Clock) error {
	if a.isCurrent(path, url, clock) {
		return nil
	}
	config, err := a.adminKubeconfig(url, clock.Now().Add(adminLife))
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("cannot encode the kubeconfig: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot make the directory of the kubeconfig: %w", err)
	}
	return writePrivate(path, text)
}

func (a *Authority) adminKubeconfig(url string, until time.Time) (kubeconfig, error) {
	key, err := newKey()
	if err != nil {
		return kubeconfig{}, err
	}
	user := api.User{Name: AdminName, Groups: []string{api.GroupMasters}}
	cert, err := a.ClientCertificate(user, key.Public(), until)
	if err != nil {
		return kubeconfig{}, err
	}
	keyText, err := encodeKey(key)
	if err != nil {
		return kubeconfig{}, err
	}
	const name = "bramble"
	config := kubeconfig{
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters: []namedCluster{{Name: name}},
		Contexts: []namedContext{{Name: name}},
		Users:    []namedCredentials{{Name: AdminName}},
	}
	config.Clusters[0].Cluster.Server = url
	config.Clusters[0].Cluster.TLSServerName = api.ServerName
	config.Clusters[0].Cluster.CA = a.PEM()
	config.Contexts[0].Context.Cluster = name
	config.Contexts[0].Context.User = AdminName
	config.Users[0].User.Certificate = encodeCertificate(cert.Raw)
	config.Users[0].User.Key = keyText
	return config, nil
}

func (a *Authority) isCurrent(path, url string, clock *Clock) bool {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		return false
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	var config kubeconfig
	if yaml.Unmarshal(text, &config) != nil || len(config.Clusters) != 1 || len(config.Users) != 1 {
		return false
	}
	cluster := config.Clusters[0].Cluster
	if cluster.Server != url || cluster.TLSServerName != api.ServerName || !bytes.Equal(cluster.CA, a.PEM()) {
		return false
	}
	cert, err := parseCertificate(config.Users[0].User.Certificate)
	if err != nil || cert.CheckSignatureFrom(a.cert) != nil {
		return false
	}
	key, _ := pem.Decode(config.Users[0].User.Key)
	return key != nil && cert.NotAfter.Sub(clock.Now()) > adminLife/3
}
