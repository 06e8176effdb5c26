/** Reports for Machines whether an update is still running, which version they have, and what their conditions say. */
import type { Condition, KubeObject } from '../../../../src/kube/resources.ts';
import type { ProofMachine } from './objects.ts';

export const IN_PROGRESS = 'in-place-updates.internal.cluster.x-k8s.io/update-in-progress';

export function isSettled(machine: ProofMachine, version: string): boolean {
  const { metadata, spec, status } = machine;
  return (
    spec.version === version &&
    status?.nodeRef !== undefined &&
    metadata.deletionTimestamp === undefined &&
    metadata.annotations?.[IN_PROGRESS] === undefined &&
    ['Ready', 'UpToDate'].every((type) => conditionOf(machine, type)?.status === 'True')
  );
}

/** Describes the Machines in words, for the error message of a wait that timed out. */
export function inWords(machines: readonly ProofMachine[]): string[] {
  return machines.map(({ metadata, spec, status }) => {
    const open = status?.conditions
      ?.filter(isOpen)
      .map(({ type, message }) => `${type}: ${message}`);
    return `${metadata.name} wants ${spec.version}, ${open?.join(', ') || 'no condition tells more'}`;
  });
}

function isOpen({ type, status }: Condition): boolean {
  return (
    (type === 'Updating' && status === 'True') ||
    (['Ready', 'UpToDate'].includes(type) && status !== 'True')
  );
}

export function conditionOf(
  object: KubeObject & { readonly status?: { readonly conditions?: readonly Condition[] } },
  type: string,
): Condition | undefined {
  return object.status?.conditions?.find((condition) => condition.type === type);
}
