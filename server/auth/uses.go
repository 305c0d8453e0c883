package auth

import (
	corev1 "k8s.io/api/core/v1"
)

// content names a ConfigMap, Secret or ServiceAccount.
type content struct{ resource, namespace, name string }

// usedBy lists the ConfigMaps and Secrets that a pod uses: by volumes, by
// projected volumes, by its containers' environment and to pull its images; and
// its ServiceAccount.
func usedBy(pod *corev1.Pod) []content {
	var used []content
	configMap := func(name string) { used = append(used, content{"configmaps", pod.Namespace, name}) }
	secret := func(name string) { used = append(used, content{"secrets", pod.Namespace, name}) }
	if account := pod.Spec.ServiceAccountName; account != "" {
		used = append(used, content{"serviceaccounts", pod.Namespace, account})
	}
	for _, s := range pod.Spec.ImagePullSecrets {
		secret(s.Name)
	}
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.ConfigMap != nil:
			configMap(v.ConfigMap.Name)
		case v.Secret != nil:
			secret(v.Secret.SecretName)
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				if s.ConfigMap != nil {
					configMap(s.ConfigMap.Name)
				}
				if s.Secret != nil {
					secret(s.Secret.Name)
				}
			}
		}
	}
	for _, c := range pod.Spec.InitContainers {
		environment(c.Env, c.EnvFrom, configMap, secret)
	}
	for _, c := range pod.Spec.Containers {
		environment(c.Env, c.EnvFrom, configMap, secret)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		environment(c.Env, c.EnvFrom, configMap, secret)
	}
	return used
}

func environment(env []corev1.EnvVar, from []corev1.EnvFromSource, configMap, secret func(string)) {
	for _, f := range from {
		if f.ConfigMapRef != nil {
			configMap(f.ConfigMapRef.Name)
		}
		if f.SecretRef != nil {
			secret(f.SecretRef.Name)
		}
	}
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
			configMap(ref.Name)
		}
		if ref := e.ValueFrom.SecretKeyRef; ref != nil {
			secret(ref.Name)
		}
	}
}
