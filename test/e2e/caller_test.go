package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const waitForReason = 45 * time.Second

// caller sends requests as they are, without a client library's help.
type caller struct {
	client *http.Client
	base   string
}

func newCaller(t *testing.T, config *rest.Config) caller {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return caller{client: client, base: config.Host}
}

// send makes one request and returns the code and, of an error, the Status.
func (c caller) send(t *testing.T, method, path, contentType, body string) (int, metav1.Status) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var status metav1.Status
	if response.StatusCode >= 400 {
		if err := json.Unmarshal(data, &status); err != nil {
			t.Errorf("%s %s: %d with no Status: %.200q", method, path, response.StatusCode, data)
		}
	}
	return response.StatusCode, status
}
