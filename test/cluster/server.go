package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Server is a real bramble-server process with its own data directory.
type Server struct {
	*Process
	Address    string // 127.0.0.1:PORT
	Dir        string // its data
	Kubeconfig string // the administrator's
	// NodeAddress is where nodes reach it: Address, or on the switch of Hosts.
	NodeAddress string
	bin         string
	flags       []string
	sockets     []*os.File // given to it as a service manager does; none: it listens itself
	disk        string     // the size of a disk of its own for Dir; "": none
	t           testing.TB
}

// StartServer starts a server on a free port of 127.0.0.1 and returns when it
// is ready. flags are added to its command line.
func StartServer(t testing.TB, flags ...string) *Server {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "server")
	s := &Server{
		Address: freeAddress(t), Dir: dir, Kubeconfig: filepath.Join(dir, "admin.kubeconfig"),
		bin: Programs(t), flags: flags, t: t,
	}
	s.NodeAddress = s.Address
	s.Start()
	return s
}

// StartServerOn is StartServer for a server that listens on the hosts' switch
// too: its nodes are started by StartNodeOn.
func StartServerOn(t testing.TB, hosts *Hosts, flags ...string) *Server {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "server")
	s := &Server{
		Address: freeAddress(t), NodeAddress: gateway + ":6443", Dir: dir, Kubeconfig: filepath.Join(dir, "admin.kubeconfig"),
		bin: Programs(t), flags: flags, t: t,
	}
	local, err := listenFile(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	s.sockets = []*os.File{local, hosts.listen()}
	t.Cleanup(func() {
		for _, socket := range s.sockets {
			_ = socket.Close()
		}
	})
	s.Start()
	return s
}

// StartServerOnDisk is StartServer for a server whose data is on a disk (tmpfs)
// of that size, such as "4m", which only it sees and which is gone with it.
func StartServerOnDisk(t testing.TB, size string) *Server {
	t.Helper()
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "admin.kubeconfig")
	s := &Server{
		Address: freeAddress(t), Dir: filepath.Join(dir, "server"), Kubeconfig: kubeconfig,
		bin: Programs(t), flags: []string{"--kubeconfig", kubeconfig}, disk: size, t: t,
	}
	s.NodeAddress = s.Address
	s.Start()
	return s
}

// ResizeDisk gives a server started by StartServerOnDisk another size of disk.
func (s *Server) ResizeDisk(size string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "nsenter", "--mount", "--target", fmt.Sprint(s.PID()), "mount", "-o", "remount,size="+size, s.Dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("cannot resize the disk: %v: %s", err, out)
	}
}

// Start starts the server again after Kill or Stop, with the same data and
// address, and returns how long it took to be ready.
func (s *Server) Start() time.Duration {
	s.t.Helper()
	began := time.Now()
	args := append([]string{"--data-dir", s.Dir, "--listen", s.Address}, s.flags...)
	cmd := exec.Command(filepath.Join(s.bin, "bramble-server"), args...)
	if len(s.sockets) > 0 { // by sd_listen_fds(3)
		script := fmt.Sprintf(`LISTEN_PID=$$ LISTEN_FDS=%d exec "$@"`, len(s.sockets))
		cmd = exec.Command("/bin/sh", append([]string{"-c", script, "sh", cmd.Path}, args...)...)
		cmd.ExtraFiles = s.sockets
	}
	if s.disk != "" {
		const script = `mkdir -p "$1" && mount -t tmpfs -o "size=$2" tmpfs "$1" && shift 2 && exec "$@"`
		cmd = exec.Command("unshare", append([]string{"--mount", "--propagation", "private", "/bin/sh", "-c", script, "sh", s.Dir, s.disk, cmd.Path}, args...)...)
	}
	s.Process = start(s.t, cmd, filepath.Join(filepath.Dir(s.Dir), "server.log"))
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	for !s.ready(ctx) {
		if s.Ended() {
			s.t.Fatalf("the server ended: %v", s.err)
		}
		if wait(ctx, 5*time.Millisecond) != nil {
			s.t.Fatal("the server is not ready after 20 s")
		}
	}
	return time.Since(began)
}

// Starved is how long the server's threads have waited for a processor, together
// (proc(5), schedstat): next to nothing on an idle machine.
func (s *Server) Starved() (waited time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.PID()))
	for _, file := range files {
		data, _ := os.ReadFile(file) // a thread may end
		if fields := strings.Fields(string(data)); len(fields) == 3 {
			nanoseconds, _ := strconv.ParseInt(fields[1], 10, 64)
			waited += time.Duration(nanoseconds)
		}
	}
	return waited
}

func (s *Server) ready(ctx context.Context) bool {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, // only "does it answer"
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.Address+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// Config returns the administrator's client configuration, without a client's
// own rate limit.
func (s *Server) Config() *rest.Config {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		s.t.Fatal(err)
	}
	config.QPS = -1
	return config
}

// Client returns client-go's clientset for the administrator.
func (s *Server) Client() *kubernetes.Clientset {
	s.t.Helper()
	client, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// Edgectl runs edgectl as the administrator and returns its standard output;
// the error carries standard error.
func (s *Server) Edgectl(args ...string) (string, error) {
	return s.Kubectl(filepath.Join(s.bin, "edgectl"), "", args...)
}

// Kubectl runs a kubectl with stdin, as the administrator.
func (s *Server) Kubectl(program, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(s.t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "HOME="+filepath.Dir(s.Dir), "KUBECTL_KUBERC=false")
	cmd.Stdin = bytes.NewBufferString(stdin)
	return run(cmd)
}

// Must runs edgectl, and fails the test if edgectl fails.
func (s *Server) Must(args ...string) string {
	s.t.Helper()
	out, err := s.Edgectl(args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// freeAddress returns a loopback address whose port was free just now.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port)
}

// Apply applies a manifest, and fails the test if the server refuses it.
func (s *Server) Apply(manifest string) {
	s.t.Helper()
	if _, err := s.Kubectl(filepath.Join(s.bin, "edgectl"), manifest, "apply", "-f", "-"); err != nil {
		s.t.Fatal(err)
	}
}

// Context ends with the test.
func (s *Server) Context() context.Context { return s.t.Context() }
