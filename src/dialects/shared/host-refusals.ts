/**
 * Finds out which versions the host of a k0s node cannot run, from the annotations that its agent
 * wrote.
 */
import type { KubeObject } from '../../kube/resources.ts';
import { cgroupV1On } from '../../signal/agent-presence.ts';
import { cgroupV1Refusal } from '../../versions/k0s-rules.ts';

/**
 * Returns why the host cannot run the version; undefined if no reason is known. It is only a hint, because the agent
 * checks again before it changes anything.
 */
export function hostRefusal(object: KubeObject, version: string): string | undefined {
  return cgroupV1On(object) === 'refused' ? cgroupV1Refusal(version) : undefined;
}

/** Returns the result of `hostRefusal` with the name of the node before it. */
export function namedHostRefusal(object: KubeObject, version: string): string | undefined {
  const refusal = hostRefusal(object, version);
  return refusal && `node ${object.metadata.name}: ${refusal}`;
}
