// Package eviction takes pods from nodes whose NoExecute taints they do not
// tolerate, or no longer: Kubernetes' taint-based eviction.
//
// What a toleration grants is counted by this process's monotonic clock from when
// it saw the taint, so that after a restart a pod has its whole time again and no
// wall clock is compared. A pod whose failover policy is keep is not taken from a
// node for being out of reach or not ready: nobody would make it anew elsewhere.
package eviction
