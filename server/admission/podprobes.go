package admission

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateProbes(c *corev1.Container, p *field.Path) field.ErrorList {
	errs := validateProbe(c.LivenessProbe, true, p.Child("livenessProbe"))
	errs = append(errs, validateProbe(c.StartupProbe, true, p.Child("startupProbe"))...)
	errs = append(errs, validateProbe(c.ReadinessProbe, false, p.Child("readinessProbe"))...)
	if c.ReadinessProbe != nil && c.ReadinessProbe.TerminationGracePeriodSeconds != nil {
		errs = append(errs, field.Invalid(p.Child("readinessProbe", "terminationGracePeriodSeconds"),
			*c.ReadinessProbe.TerminationGracePeriodSeconds, "must not be set for readinessProbes"))
	}
	return errs
}

// validateProbe checks one probe; one that kills has done so after one success
// or not at all.
func validateProbe(probe *corev1.Probe, kills bool, p *field.Path) field.ErrorList {
	if probe == nil {
		return nil
	}
	errs := validateHandler(handler{probe.Exec, probe.HTTPGet, probe.TCPSocket, probe.GRPC, nil}, p)
	for _, n := range []struct {
		name  string
		value int32
		least int32
	}{
		{"initialDelaySeconds", probe.InitialDelaySeconds, 0}, {"timeoutSeconds", probe.TimeoutSeconds, 1}, {"periodSeconds", probe.PeriodSeconds, 1},
		{"successThreshold", probe.SuccessThreshold, 1}, {"failureThreshold", probe.FailureThreshold, 1},
	} {
		if n.value < n.least {
			errs = append(errs, field.Invalid(p.Child(n.name), n.value, fmt.Sprintf("must be greater than or equal to %d", n.least)))
		}
	}
	if kills && probe.SuccessThreshold > 1 {
		errs = append(errs, field.Invalid(p.Child("successThreshold"), probe.SuccessThreshold, "must be 1"))
	}
	if grace := probe.TerminationGracePeriodSeconds; grace != nil && *grace < 1 {
		errs = append(errs, field.Invalid(p.Child("terminationGracePeriodSeconds"), *grace, "must be greater than or equal to 1"))
	}
	return errs
}

// handler is what a probe or a hook does, of which there must be one.
type handler struct {
	exec  *corev1.ExecAction
	http  *corev1.HTTPGetAction
	tcp   *corev1.TCPSocketAction
	grpc  *corev1.GRPCAction
	sleep *corev1.SleepAction
}

func validateHandler(h handler, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	handlers := 0
	one := func(set bool, name string, check func(at *field.Path) field.ErrorList) {
		if !set {
			return
		}
		if handlers++; handlers > 1 {
			errs = append(errs, field.Forbidden(p.Child(name), "may not specify more than 1 handler type"))
			return
		}
		errs = append(errs, check(p.Child(name))...)
	}
	one(h.exec != nil, "exec", func(at *field.Path) field.ErrorList {
		if len(h.exec.Command) == 0 {
			return field.ErrorList{field.Required(at.Child("command"), "")}
		}
		return nil
	})
	one(h.http != nil, "httpGet", func(at *field.Path) field.ErrorList { return validateGet(h.http, at) })
	one(h.tcp != nil, "tcpSocket", func(at *field.Path) field.ErrorList { return validatePort(h.tcp.Port, at.Child("port")) })
	one(h.grpc != nil, "grpc", func(at *field.Path) field.ErrorList {
		return validatePort(intstr.FromInt32(h.grpc.Port), at.Child("port"))
	})
	one(h.sleep != nil, "sleep", func(*field.Path) field.ErrorList { return nil })
	if handlers == 0 {
		errs = append(errs, field.Required(p, "must specify a handler type"))
	}
	return errs
}

func validateGet(get *corev1.HTTPGetAction, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if get.Path == "" {
		errs = append(errs, field.Required(p.Child("path"), ""))
	}
	errs = append(errs, validatePort(get.Port, p.Child("port"))...)
	errs = append(errs, oneOf(get.Scheme, p.Child("scheme"), corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
	for i, h := range get.HTTPHeaders {
		at := p.Child("httpHeaders").Index(i)
		for _, msg := range validation.IsHTTPHeaderName(h.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), h.Name, msg))
		}
		if strings.ContainsAny(h.Value, "\r\n\x00") {
			errs = append(errs, field.Invalid(at.Child("value"), h.Value, "must be one line"))
		}
	}
	return errs
}

func validatePort(port intstr.IntOrString, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	msgs := validation.IsValidPortNum(port.IntValue())
	if port.Type == intstr.String {
		msgs = validation.IsValidPortName(port.StrVal)
	}
	for _, msg := range msgs {
		errs = append(errs, field.Invalid(p, port.String(), msg))
	}
	return errs
}

func validateLifecycle(l *corev1.Lifecycle, s *corev1.PodSpec, p *field.Path) field.ErrorList {
	if l == nil {
		return nil
	}
	var errs field.ErrorList
	for _, h := range []struct {
		name string
		hook *corev1.LifecycleHandler
	}{{"postStart", l.PostStart}, {"preStop", l.PreStop}} {
		if h.hook == nil {
			continue
		}
		at := p.Child(h.name)
		errs = append(errs, validateHandler(handler{h.hook.Exec, h.hook.HTTPGet, h.hook.TCPSocket, nil, h.hook.Sleep}, at)...)
		if sleep := h.hook.Sleep; sleep != nil && (sleep.Seconds < 0 || s.TerminationGracePeriodSeconds != nil && sleep.Seconds > *s.TerminationGracePeriodSeconds) {
			errs = append(errs, field.Invalid(at.Child("sleep"), sleep.Seconds, fmt.Sprintf(
				"must be non-negative and less than terminationGracePeriodSeconds (%d)", orZero(s.TerminationGracePeriodSeconds))))
		}
	}
	if l.StopSignal != nil {
		errs = append(errs, validateStopSignal(*l.StopSignal, s, p.Child("stopSignal"))...)
	}
	return errs
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// validateStopSignal wants one of Linux's signals, and a pod that says that it is
// for Linux.
func validateStopSignal(signal corev1.Signal, s *corev1.PodSpec, p *field.Path) field.ErrorList {
	if s.OS == nil || s.OS.Name == "" {
		return field.ErrorList{field.Forbidden(p, "may not be set without spec.os.name; set that to linux")}
	}
	if !stopSignals[string(signal)] {
		return field.ErrorList{field.Invalid(p, string(signal), "must be the name of a signal of Linux, such as SIGTERM or SIGUSR1")}
	}
	return nil
}

// stopSignals are signal(7)'s names, without the aliases.
var stopSignals = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields("ABRT ALRM BUS CHLD CONT FPE HUP ILL INT IO KILL PIPE PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ") {
		all["SIG"+name] = true
	}
	return all
}()

// validateReadinessGates wants names of conditions.
func validateReadinessGates(gates []corev1.PodReadinessGate, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, g := range gates {
		for _, msg := range validation.IsQualifiedName(string(g.ConditionType)) {
			errs = append(errs, field.Invalid(p.Index(i).Child("conditionType"), string(g.ConditionType), msg))
		}
	}
	return errs
}
