/**
 * Finds what Refit has recorded of the updates of a Machine. The NodeRollout is about the owner if all Machines of the
 * owner were one plan, and about the Machine itself otherwise.
 */
import {
  CONTROL_PLANE_GROUP,
  type Machine,
  machineDeployments,
  machines,
  SET_LABELS,
} from '../../../api/capi/machine.ts';
import type { NodeRollout, NodeRolloutRun } from '../../../api/refit/node-rollout.ts';
import type { OwnerReference } from '../../../kube/resources.ts';
import { ownMember } from '../../../util/own-member.ts';

/**
 * Returns the reference to the control plane that owns the Machine. Only certain kinds are accepted, because the kind
 * becomes part of a path and of a command line.
 */
export function controlPlaneOf({ metadata }: Machine): OwnerReference | undefined {
  return metadata.ownerReferences?.find(
    ({ apiVersion, kind, controller }) =>
      controller === true &&
      apiVersion.startsWith(`${CONTROL_PLANE_GROUP}/`) &&
      /^[A-Za-z0-9]+ControlPlane$/.test(kind),
  );
}

/** Returns the name of the MachineDeployment of the Machine; undefined if it belongs to none. */
export function deploymentOf({ metadata }: Machine): string | undefined {
  return ownMember(metadata.labels, SET_LABELS.deployment);
}

/** Returns the NodeRollouts with runs that may have updated the Machine. The one with the latest run comes first. */
export function recordsOf(all: readonly NodeRollout[], machine: Machine): NodeRollout[] {
  const deployment = deploymentOf(machine);
  const subjects = [
    { kind: machines.kind, name: machine.metadata.name },
    ...(deployment === undefined ? [] : [{ kind: machineDeployments.kind, name: deployment }]),
    controlPlaneOf(machine) ?? [],
  ].flat();
  return all
    .filter(({ spec: { plan } }) =>
      subjects.some(({ kind, name }) => kind === plan.kind && name === plan.name),
    )
    .toSorted((a, b) => startOf(b.status?.history?.[0]) - startOf(a.status?.history?.[0]));
}

/** Returns the recorded runs that may have updated the Machine, the latest first. */
export function runsOf(all: readonly NodeRollout[], machine: Machine): NodeRolloutRun[] {
  return recordsOf(all, machine)
    .flatMap(({ status }) => status?.history ?? [])
    .toSorted((a, b) => startOf(b) - startOf(a));
}

/** Returns true if the Machine existed when the run began, so that it may be one of the nodes that the run does not name. */
export function existedAtStart({ metadata }: Machine, run: NodeRolloutRun): boolean {
  const { creationTimestamp = '' } = metadata;
  return !(Date.parse(creationTimestamp) > startOf(run));
}

function startOf(run: NodeRolloutRun | undefined): number {
  const started = Date.parse(run?.started ?? '');
  return Number.isNaN(started) ? 0 : started;
}
