// Package device gives the node's devices to containers. A Table knows which devices
// the board has, as which resources pods may ask for each, and which container has
// which; it follows devices that are unplugged and come back elsewhere. It opens no
// device and starts no container: the pod workers ask it before they make one.
package device
