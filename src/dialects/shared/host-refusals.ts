/** Tells which versions a host of k0s cannot run, by what its agent announced. */
import type { KubeObject } from '../../kube/resources.ts';
import { cgroupV1On } from '../../signal/agent-presence.ts';
import { cgroupV1Refusal } from '../../versions/k0s-rules.ts';

/** Undefined if nothing is known against it. Only a hint: the agent decides itself before it does anything. */
export function hostRefusal(object: KubeObject, version: string): string | undefined {
  return cgroupV1On(object) === 'refused' ? cgroupV1Refusal(version) : undefined;
}

/** The same for a sentence that does not name the object yet. */
export function namedHostRefusal(object: KubeObject, version: string): string | undefined {
  const refusal = hostRefusal(object, version);
  return refusal && `node ${object.metadata.name}: ${refusal}`;
}
