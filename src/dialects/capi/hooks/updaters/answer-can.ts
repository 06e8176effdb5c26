/** Answers CanUpdateMachine and CanUpdateMachineSet for all updaters of an UpdaterSet together. */
import type { Claim, Patches, Triple } from '../../../../api/capi/hooks.ts';
import {
  CONTROL_PLANE_LABEL,
  type Machine,
  machines,
  SET_LABELS,
} from '../../../../api/capi/machine.ts';
import type { Updater, UpdaterSet } from '../../../../api/refit/updater-set.ts';
import { kubeletVersionOf, type Node, readyCondition } from '../../../../kube/resources.ts';
import { listNodes } from '../../../../kube/trimmed.ts';
import { agentOf, SILENT_MS, silenceOn } from '../../../../signal/agent-presence.ts';
import { formatDuration } from '../../../../util/duration.ts';
import type { Logger } from '../../../../util/log.ts';
import { freeMiBOn, PAYLOAD_MIB } from '../../../shared/agents-ground.ts';
import { namedHostRefusal } from '../../../shared/host-refusals.ts';
import { type AskedUpdate, type OwnerWait, OwnerWaits } from '../../plan/owner-waits.ts';
import { refusalByProcedure } from '../../plan/procedures.ts';
import type { NodeCluster } from '../../plan/progress.ts';
import { judgeMachines, type MachineVersionVerdict } from '../../plan/version-problem.ts';
import {
  accepted,
  answerCan,
  type CanRequest,
  MACHINE_SHAPE,
  SET_SHAPE,
  valueAt,
} from '../can-update.ts';
import { isDisabled } from '../settings.ts';
import { type Composition, compose, patchesTo } from './composition.ts';
import { claimConfiguration } from './node-configuration.ts';
import { tellRefused } from './refused-changes.ts';
import { recordAccepted, recordOn, saved } from './step-record.ts';
import { type CallUpdater, UNPROVEN } from './updater-client.ts';
import { type CallParts, type Labels, listSets, setFor, updatersFor } from './updater-sets.ts';

export interface CanParts extends CallParts {
  readonly clusterOf: (machine: Machine) => Pick<NodeCluster, 'workload'>;
  /**
   * Calls an updater. The function is undefined if Refit does not check who calls the hooks. In this case, only Refit's
   * own updater works.
   */
  readonly callUpdater: CallUpdater | undefined;
  readonly log: Logger;
  /** Says whether the owner of the Machines waits; undefined if nobody asks before Machines are marked. */
  readonly ownerWait: OwnerWait | undefined;
}

export type CanHook = 'CanUpdateMachine' | 'CanUpdateMachineSet';

/**
 * The part of the time of a call that updaters may use together; the rest is for the answer of Refit itself. What
 * remains of this part is divided equally among the updaters that Refit has not called yet.
 */
const SHARED = 0.9;

/**
 * Answers which changes the updaters can make. Throws if Refit can neither accept the change nor let Cluster API
 * replace the Machine. Cluster API then waits and calls again.
 */
export async function canUpdate(
  parts: CanParts,
  hook: CanHook,
  request: CanRequest,
  withinMs: number,
) {
  const { callUpdater, clock, log, abort } = parts;
  const end = clock.monotonic() + withinMs * SHARED;
  const shape = hook === 'CanUpdateMachine' ? MACHINE_SHAPE : SET_SHAPE;
  const { current, desired, settings } = request;
  const { machine, machineSet } = current;
  // For a MachineSet, the labels in its template are used, because its Machines get these labels before they are
  // updated.
  const ofTemplate =
    valueAt(desired['machineSet'], ['spec', 'template', 'metadata', 'labels']) ?? {};
  const labels = desired['machine']?.metadata.labels ?? (ofTemplate as Labels);
  const set = isDisabled(settings) ? undefined : setFor(await listSets(parts), labels);
  let unchecked: string | undefined;
  let waits: string | undefined;
  const askRefit = async (body: CanRequest) => {
    const answer = answerCan(hook, shape, body);
    if ((answer.machinePatch ?? answer.machineSetPatch) === undefined)
      return { answer, missing: undefined };
    const verdict = await judgeNodes(parts, { ...request, settings: body.settings });
    unchecked = verdict.unchecked;
    if (verdict.problem === undefined) waits = await parts.ownerWait?.(verdict.asked, abort);
    const message = withUnchecked(answer.message ?? '', unchecked);
    return { answer: { ...answer, message }, missing: verdict.problem };
  };
  if (!set) {
    const { answer, missing } = await askRefit(request);
    if (missing !== undefined) return accepted(hook, `covers nothing: ${missing}`);
    if (waits !== undefined) throw new OwnerWaits(waits);
    // The Machine may have the record of an accepted update that was never carried out. That record must not be used
    // for this update, so it is removed.
    if (machine && recordOn(machine, '')) await saved(parts, machine);
    return answer;
  }
  const updaters = updatersFor(set, labels);
  const ask = async (updater: Updater, from: Triple, to: Triple) => {
    const waiting = updaters.length - updaters.indexOf(updater);
    const share = AbortSignal.timeout(Math.max(0, Math.floor((end - clock.monotonic()) / waiting)));
    const body = { current: from, desired: to };
    if (updater.refit) {
      const { answer, missing } = await askRefit({ ...body, settings: updater.settings });
      if (missing === undefined) return answer;
      throw new Error(missing);
    }
    if (!callUpdater) throw new Error(UNPROVEN);
    if (updater.nodeConfiguration) {
      const { lacking, own } = await nodesOf(parts, current);
      if (lacking[0] !== undefined) throw new Error(lacking[0]);
      return claimConfiguration(hook, shape, body, own);
    }
    const answer = await callUpdater(updater, hook, body, AbortSignal.any([abort, share]));
    if (answer.status === 'Success') return answer;
    throw new Error(answer.message ?? 'it answered Failure without a message');
  };
  const composition = await compose(shape, request, updaters, ask);
  const { kind = '', metadata } = machine ?? machineSet ?? { metadata: { name: '' } };
  const title = `${kind} ${metadata.namespace ?? 'default'}/${metadata.name}`;
  const hold = holdBy(set, updaters, composition, title);
  await tellRefused(parts, set, title, hold).catch((error: unknown) =>
    log.warn('cannot write the status of the UpdaterSet', {
      updaterSet: set.metadata.name,
      reason: error,
    }),
  );
  if (hold !== undefined) throw new Error(`UpdaterSet ${set.metadata.name}: ${hold}`);
  const message = describe(composition);
  if (composition.uncovered.length > 0) return accepted(hook, message);
  const changesVersion = isVersionIn(composition);
  // A policy for the version says nothing about changes without one.
  if (changesVersion && waits !== undefined) throw new OwnerWaits(waits);
  const needed = updatersNeeded(updaters, composition);
  if (needed.length > 0) await recordAccepted(parts, request, set, needed);
  const told = changesVersion ? withUnchecked(message, unchecked) : message;
  return accepted(hook, told, claimOf(composition, patchesTo(shape, current, composition.reached)));
}

/** Returns the updaters that have to do something for the Machine. */
function updatersNeeded(updaters: readonly Updater[], composition: Composition): Updater[] {
  const changesVersion = isVersionIn(composition);
  const takes = ({ name }: Updater): boolean =>
    composition.steps.some(({ updater }) => updater === name);
  // Refit's own updater is left out if the version does not change. The version that a kubelet reports may not identify
  // the build that the node runs, so the updater would install the same version again.
  return updaters.filter((each) =>
    each.refit ? changesVersion : !each.nodeConfiguration || takes(each),
  );
}

function isVersionIn({ steps }: Composition): boolean {
  return steps.some(({ changes }) => changes.includes('machine.spec.version'));
}

/**
 * Returns the patches. If every updater says that the Machine stays available, and the version does not change, the
 * result says so, too.
 */
function claimOf(composition: Composition, patches: Patches): Claim {
  // Refit drains the node for every new version, even if another updater installs that version.
  const { steps } = composition;
  const isQuiet = steps.length > 0 && steps.every(({ staysAvailable }) => staysAvailable);
  const staysAvailable = isQuiet && !isVersionIn(composition);
  return staysAvailable ? { ...patches, affectsAvailability: false } : patches;
}

const TITLE = /^([A-Za-z]+) ([a-z0-9.-]+)\/([a-z0-9.-]+)$/;

/** Returns the reason why Cluster API must wait; undefined if it may update the Machine in place or replace it. */
function holdBy(
  { spec, status }: UpdaterSet,
  updaters: readonly Updater[],
  composition: Composition,
  title: string,
) {
  const { unanswered, uncovered } = composition;
  const policyOf = (name: string) =>
    updaters.find((updater) => updater.name === name)?.onUnavailable ?? 'Wait';
  const awaited = unanswered.find(
    ({ updater }) =>
      policyOf(updater) === 'Refuse' || (uncovered.length > 0 && policyOf(updater) === 'Wait'),
  );
  if (awaited) return `waiting for updater ${awaited.updater}: ${awaited.reason}`;
  if (uncovered.length > 0 && spec.uncovered === 'Refuse')
    return `refused, because it ${describe(composition)}`;
  if (
    uncovered.length > 0 &&
    spec.uncovered === 'Ask' &&
    status?.approved?.includes(title) !== true
  ) {
    // The caller chose the title, and a user will paste this command into a shell, so the title must be checked or
    // quoted.
    const [, kind, namespace, name] = TITLE.exec(title) ?? [];
    if (!kind)
      return `refused, because ${JSON.stringify(title.slice(0, 100))} names no object; it must name an object, for example Machine prod/cp-1`;
    const command = `refit approve ${kind.toLowerCase()}/${name} --namespace ${namespace}`;
    return `waits for approval, because it ${describe(composition)}; to approve the replacement, run: ${command}`;
  }
  return undefined;
}

function describe({ steps, uncovered, unanswered }: Composition): string {
  const covered = steps
    .map(({ updater, changes }) => `${changes.join(', ')} (${updater})`)
    .join('; ');
  const silent = unanswered
    .map(({ updater, reason }) => `; no answer from ${updater}: ${reason}`)
    .join('');
  return `covers ${covered || 'nothing'}; not covered: ${uncovered.join(', ') || 'nothing'}${silent}`;
}

const SET_VERSION = ['spec', 'template', 'spec', 'version'];

/**
 * Returns the Machines with their Nodes, and a reason for each Machine without a working agent. Throws if a Node has
 * just joined, because its agent may still start. Without the agent, the answer would be that all Machines must be
 * replaced.
 */
async function nodesOf(
  { management, clusterOf, clock, abort }: CanParts,
  { machine, machineSet }: Triple,
) {
  const { name, namespace = 'default', labels } = (machine ?? machineSet)?.metadata ?? { name: '' };
  const labelSelector = `${SET_LABELS.hash}=${labels?.[SET_LABELS.hash] ?? name}`;
  const listed = machine
    ? [await management.get(machines, name, { namespace, abort })]
    : (await management.listAll(machines, { namespace, labelSelector, abort })).items;
  // In a MachineSet, Machines that are being deleted are ignored, because Cluster API does not update them. They must
  // not influence the answer, which Cluster API caches for a day.
  const found = listed.filter((each) => machine || each.metadata.deletionTimestamp === undefined);
  const [cluster, other] = new Set(found.map(clusterOf));
  if (other) throw new Error(`Machines of several clusters have the label ${labelSelector}`);
  const seen = cluster ? (await listNodes(cluster.workload, { abort })).items : [];
  const all = new Map(seen.map((node) => [node.metadata.name, node]));
  const own: { machine: Machine; node: Node }[] = [];
  const lacking = found.flatMap((each) => {
    const node = all.get(each.status?.nodeRef?.name ?? '');
    if (node) own.push({ machine: each, node });
    if (node && agentOf(node).ours) return stalenessOf(node, clock.now()) ?? [];
    const nodeName = each.status?.nodeRef?.name;
    // Cluster API skips Machines of a set that have no Node.
    if (nodeName === undefined && !machine) return [];
    const reason =
      nodeName === undefined ? 'the Machine has no Node' : `node ${nodeName} has no agent of Refit`;
    const ageMs = clock.now() - Date.parse((node ?? each).metadata.creationTimestamp ?? '');
    if (ageMs < STARTS_WITHIN_MS) throw new Error(`${reason} yet`);
    return reason;
  });
  return { workload: cluster?.workload, labels, own, lacking };
}

function withUnchecked(message: string, unchecked: string | undefined): string {
  return unchecked === undefined ? message : `${message}; ${unchecked}`;
}

/**
 * Returns an object whose `problem` is the reason why Refit's own updater cannot upgrade all these Nodes to the
 * version. `problem` is undefined if the updater can upgrade all of them.
 */
async function judgeNodes(
  parts: CanParts,
  { current, desired, settings }: CanRequest,
): Promise<MachineVersionVerdict & { readonly asked: readonly AskedUpdate[] }> {
  const { workload, labels, own, lacking } = await nodesOf(parts, current);
  const wanted = [
    valueAt(desired['machine'], ['spec', 'version']),
    valueAt(desired['machineSet'], SET_VERSION),
  ];
  const [version = ''] = wanted.filter((each) => typeof each === 'string');
  const obstacleOn = ({ machine, node }: (typeof own)[number]) =>
    refusalByProcedure(machine, version, node) ??
    namedHostRefusal(node, version) ??
    lackOfRoom(node) ??
    [];
  const reason = [...lacking, ...own.flatMap(obstacleOn)].at(0);
  if (reason !== undefined || own.length === 0 || !workload)
    return { problem: reason, unchecked: undefined, asked: [] };
  const targets = own.map(({ node }) => ({
    name: node.metadata.name,
    current: kubeletVersionOf(node),
  }));
  const role = labels?.[CONTROL_PLANE_LABEL] === undefined ? 'worker' : 'controller';
  const verdict = await judgeMachines({ ...parts, workload }, { role, version, targets }, settings);
  return { ...verdict, asked: own.map((each) => ({ ...each, version, role })) };
}

/**
 * The milliseconds after the creation of a Node in which its agent may still announce itself. For a Machine without a
 * Node, they count from the creation of the Machine.
 */
const STARTS_WITHIN_MS = 300_000;

/**
 * Returns a message that says since when the node or its agent has not reported; undefined if both report. Throws if
 * the Ready condition of the node changed only a short time ago, because the node or its agent may then report again
 * soon.
 */
export function stalenessOf(node: Node, now: number): string | undefined {
  const { name } = node.metadata;
  const ready = readyCondition(node);
  const silentMs = silenceOn(node);
  const staleness =
    ready?.status === 'Unknown'
      ? `node ${name} has been silent since ${ready.lastTransitionTime}`
      : silentMs > SILENT_MS &&
        `the agent on node ${name} has been silent for ${formatDuration(silentMs)}`;
  if (staleness && now - Date.parse(ready?.lastTransitionTime ?? '') < STARTS_WITHIN_MS)
    throw new Error(`${staleness}, and may be back soon`);
  return staleness || undefined;
}

/**
 * Returns a message if the node has too little free disk space; undefined if it has enough, or if
 * its agent does not report it.
 */
export function lackOfRoom(node: Node): string | undefined {
  const freeMiB = freeMiBOn(node);
  if (freeMiB === undefined || freeMiB >= PAYLOAD_MIB) return undefined;
  return `node ${node.metadata.name} has ${freeMiB} MiB free besides its reserve, but an update needs ${PAYLOAD_MIB} MiB`;
}
