/** Answers UpdateMachine: writes a request to the Node, and then reports the progress. */
import { randomUUID } from 'node:crypto';
import {
  HOOK_GROUP,
  type UpdateMachineRequest,
  type UpdateMachineResponse,
} from '../../../api/capi/hooks.ts';
import { CONTROL_PLANE_LABEL, type Machine, NODE_ANNOTATIONS } from '../../../api/capi/machine.ts';
import { withoutControls } from '../../../engine/model/controls.ts';
import type { Payload, Role } from '../../../engine/model/rollout.ts';
import { platformOf } from '../../../engine/snapshot/gather.ts';
import { chunksOf, httpGet } from '../../../http/http-get.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { kubeletVersionOf, type Node, nodes } from '../../../kube/resources.ts';
import { ifUnchanged } from '../../../kube/status-error.ts';
import { listNodes } from '../../../kube/trimmed.ts';
import type { Procedure } from '../../../signal/agent-presence.ts';
import { textIn } from '../../../util/bounded-file.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { messageOf, RefitError } from '../../../util/errors.ts';
import { printableUrl } from '../../../util/printable-url.ts';
import { parseVersion } from '../../../util/version.ts';
import { kubernetesPartOf, mayBePartOf } from '../../../versions/release-parts.ts';
import { namedHostRefusal } from '../../shared/host-refusals.ts';
import { isController } from '../../shared/node-endpoints.ts';
import { orphanOn } from './capi-orphaned-work.ts';
import { versionIn } from './desired-version.ts';
import type { TellMachine } from './machine-events.ts';
import { findRollout, leftIn, type MachineOwners, withOwnedRequest } from './machine-owners.ts';
import type { RulesOf } from './machine-rules.ts';
import { type MachineUpdate, updateOn, withoutUpdate, withRequest } from './machine-update.ts';
import { procedureFor, refusalByProcedure, unknownProvider } from './procedures.ts';
import { type Progress, type ProgressParts, progressOf } from './progress.ts';
import type { ReplaceStuck } from './stuck-machines.ts';
import { judgeMachines } from './version-problem.ts';

/** The tools and options that UpdateMachine uses for Nodes of any cluster. */
export interface UpdateTools {
  /** The client of the cluster with the Machines. The Machines and the Nodes may be in the same cluster. */
  readonly management: KubeClient;
  readonly rulesOf: RulesOf;
  readonly source: {
    /**
     * The URL of the payload. It may contain `{version}`, `{os}`, `{arch}` and `{procedure}`. For kubeadm it is the URL
     * of a list of binaries.
     */
    readonly url: string;
    /** The URL of the output of sha256sum, with the same placeholders. If undefined, the payload is not verified. */
    readonly checksumUrl?: string | undefined;
  };
  readonly readText: (url: string, abort: AbortSignal) => Promise<string>;
  readonly replaceStuck: ReplaceStuck;
  readonly owners: MachineOwners;
  readonly tell: TellMachine;
}

/** The tools and options of one call of UpdateMachine, for a Node of one cluster. */
export interface UpdateParts extends ProgressParts, UpdateTools {}

type Wanted = Pick<MachineUpdate, 'machine' | 'version'>;

/**
 * Answers one call. It is idempotent and works on any replica. `live` is the Machine in the API. Rejects if an API
 * server or the checksum is unavailable.
 */
export async function updateMachine(
  parts: UpdateParts,
  request: UpdateMachineRequest,
  live: Machine,
) {
  const { settings, desired } = request;
  const { name, namespace = 'default' } = desired.machine.metadata;
  const version = versionIn(desired.machine);
  if (version === undefined || !parseVersion(version))
    return failure(
      `Machine ${namespace}/${name}: spec.version is missing or not a version; use for example v1.36.3`,
    );
  const wanted: Wanted = { machine: `${namespace}/${name}`, version };
  const seen = parts.seenNode(live.status?.nodeRef?.name ?? '');
  // The Node in the cache of the watch is sufficient for an answer if it shows that this update is in progress. For any
  // other answer, Refit reads the Node again.
  if (seen && disagreementOf(live, seen) === undefined && isFor(wanted, updateOn(seen))) {
    const progress = await progressOf(parts, seen, parts.seenNodes());
    if (!progress.isOver) return underWay(progress.message, secondsAt(progress));
  }
  const found = await findNode(parts, `Machine ${wanted.machine}`, live);
  return typeof found === 'string'
    ? failure(found)
    : await follow({ ...parts, settings }, wanted, found);
}

const isFor = ({ machine, version }: Wanted, update?: MachineUpdate): boolean =>
  update?.version === version && update.machine === machine;

interface CallParts extends UpdateParts, Pick<UpdateMachineRequest, 'settings'> {}

async function follow(parts: CallParts, wanted: Wanted, found: MachineWithNode) {
  const { node } = found;
  const update = updateOn(node);
  const progress = update && (await progressOf(parts, node));
  const isSame = isFor(wanted, update);
  if (progress && !progress.isOver && !isSame && !progress.isBegun) {
    await ifUnchanged(parts.workload.replace(nodes, withoutUpdate(node), { abort: parts.abort }));
    return underWay(`the update to ${update.version} is not in progress; its request is withdrawn`);
  }
  if (progress && !progress.isOver) {
    // An earlier update must end first, because a node must not stay half upgraded.
    const message = isSame
      ? progress.message
      : `waiting for the update to ${update.version}: ${progress.message}`;
    return underWay(message, secondsAt(progress));
  }
  if (progress?.failed && isSame)
    return failure(
      `${progress.message}${await parts.replaceStuck(found.machine, node, parts.abort)}`,
    );
  if (progress && isSame) return verified(node, wanted, progress);
  if (kubeletVersionOf(node) === wanted.version) {
    if (orphanOn(node) === undefined) return DONE;
    return underWay(
      `the leader is still cleaning up an earlier update of node ${node.metadata.name}, whose request was removed`,
    );
  }
  return await begin(parts, wanted, found);
}

/** The milliseconds after the end of an update in which the kubelet must report the new version. It does so when it starts. */
const VERIFY_MS = 10 * 60_000;

/** Returns DONE only if the kubelet reports the version, because Cluster API does not ask again after that answer. */
function verified(node: Node, { version }: Wanted, { ageMs }: Progress): UpdateMachineResponse {
  const kubelet = kubeletVersionOf(node) ?? 'no version';
  if (mayBePartOf(kubelet, version)) return DONE;
  const { name } = node.metadata;
  const still = `its kubelet reports ${kubelet} instead of ${kubernetesPartOf(version)}`;
  if (!(ageMs >= VERIFY_MS)) return underWay(`node ${name} was updated, but ${still}`);
  const advice = 'check that spec.version names what the payload installs';
  return failure(
    `node ${name} was updated more than ${VERIFY_MS / 60_000} minutes ago, but ${still}; ${advice}`,
  );
}

async function begin(parts: CallParts, wanted: Wanted, { machine, node, role }: MachineWithNode) {
  const { workload, clock, abort } = parts;
  const { name } = node.metadata;
  const platform = platformOf(node);
  if (platform === undefined)
    return failure(`node ${name} has no labels kubernetes.io/os and kubernetes.io/arch`);
  const procedure = procedureFor(machine, wanted.version, node);
  if (procedure === undefined) return failure(unknownProvider(machine));
  // CanUpdateMachine may have been called for another version, or not at all.
  const refusal =
    refusalByProcedure(machine, wanted.version, node) ?? namedHostRefusal(node, wanted.version);
  if (refusal !== undefined) return failure(refusal);
  const stage = {
    role,
    version: wanted.version,
    targets: [{ name, current: kubeletVersionOf(node) }],
  };
  const { problem, unchecked } = await judgeMachines(parts, stage, parts.settings);
  if (problem !== undefined) return failure(problem);
  const payload = await findPayload(parts, { version: wanted.version, platform, procedure });
  const update: MachineUpdate = {
    uid: randomUUID(),
    ...wanted,
    role,
    requested: rfc3339(clock.now()),
    platform,
    ...payload,
    rules: await parts.rulesOf(machine, abort),
    ...(procedure === 'kubeadm' && { procedure: 'kubeadmupdate' }),
  };
  const request = await ownedRequest(parts, { machine, node, role }, update);
  // After a conflict, another replica or the kubelet has written the Node. The next call reads it again.
  await ifUnchanged(workload.replace(nodes, request, { abort }));
  const starts = `node ${name} is about to start`;
  if (unchecked === undefined) return underWay(starts);
  void parts.tell(
    { ...machine, kind: 'Machine' },
    { type: 'Warning', reason: 'VersionUnchecked', message: `starts; ${unchecked}` },
  );
  return underWay(`${starts}; ${unchecked}`);
}

/** Returns the Node with its request, which names the owner of the Machine if all Machines of the owner are one plan. */
async function ownedRequest(
  { owners, workload, clock, abort }: CallParts,
  { machine, node }: MachineWithNode,
  update: MachineUpdate,
): Promise<Node> {
  const owner = await owners.of(machine, abort);
  if (owner === undefined) return withRequest(withoutControls(node), update);
  const all = (await listNodes(workload, { abort })).items;
  const rollout = await findRollout(owners, all, machine, owner, update.version, abort);
  const left =
    leftIn(all, rollout) ?? (await owners.nodesOf(machine, owner, update.version, abort));
  // The order of the requests is the order of the Machines, so seconds are not exact enough.
  const requested = new Date(clock.now()).toISOString();
  return withOwnedRequest(node, { ...update, requested }, owner, rollout, left);
}

const HEAD = { apiVersion: HOOK_GROUP, kind: 'UpdateMachineResponse' } as const;
/**
 * The seconds until the next call while an agent works. Calls are cheap, and the steps of an agent take seconds to
 * minutes.
 */
const SOON = 2;
/**
 * The seconds until the next call while the update waits for something other than an agent. Cluster API checks its own drains
 * as often. The update continues without a call, because the leader carries it out.
 */
const LATER = 20;

const secondsAt = ({ waitsForOthers }: Progress): number => (waitsForOthers ? LATER : SOON);

export const DONE: UpdateMachineResponse = { ...HEAD, status: 'Success', retryAfterSeconds: 0 };

export function underWay(message: string, retryAfterSeconds = SOON): UpdateMachineResponse {
  return { ...HEAD, status: 'Success', message, retryAfterSeconds };
}

/** Returns the answer for a problem that a person must fix. The caller retries anyway, with a growing backoff. */
export function failure(message: string): UpdateMachineResponse {
  return { ...HEAD, status: 'Failure', message, retryAfterSeconds: 0 };
}

/** A Machine with its Node. Refit has verified that the Node belongs to the Machine. */
export interface MachineWithNode {
  readonly machine: Machine;
  readonly node: Node;
  readonly role: Role;
}

/**
 * Returns the Node of the Machine. If Refit finds no Node, or cannot verify that the Node belongs to the Machine,
 * returns a message.
 */
export async function findNode(
  { workload, abort }: UpdateParts,
  title: string,
  machine: Machine,
): Promise<MachineWithNode | string> {
  const nodeName = machine.status?.nodeRef?.name;
  const node = nodeName === undefined ? undefined : await workload.get(nodes, nodeName, { abort });
  if (!node) return `${title} has no Node yet`;
  const disagreement = disagreementOf(machine, node);
  if (disagreement !== undefined)
    return `${title} and node ${node.metadata.name} do not belong together: ${disagreement}; ${adviceFor(disagreement)}`;
  // The label makes the node a controller if it is on the Machine or on the Node. If only the label of the Machine
  // counted, a person who may write only Machines could make two controllers upgrade at the same time.
  const isControlPlane =
    machine.metadata.labels?.[CONTROL_PLANE_LABEL] !== undefined || isController(node);
  const role: Role = isControlPlane ? 'controller' : 'worker';
  return { machine, node, role };
}

/** Returns what to do. If only the uid differs, the Node is in the right cluster, but was deleted and made again. */
function adviceFor(disagreement: string): string {
  return disagreement.startsWith('status.nodeRef.uid')
    ? 'the Node was deleted and made again, so wait until Cluster API has updated status.nodeRef of the Machine'
    : 'check that --kubeconfig is for the cluster of this Machine';
}

/**
 * Returns the fields in which the Machine and the Node disagree; undefined if they agree. An equal name is not
 * sufficient, because Nodes of two clusters may have the same name.
 */
export function disagreementOf(
  { metadata, spec, status }: Machine,
  node: Node,
): string | undefined {
  const { annotations = {}, uid = '' } = node.metadata;
  const { cluster, namespace, machine } = NODE_ANNOTATIONS;
  const facts: [
    ofMachine: string,
    wanted: string | undefined,
    ofNode: string,
    found: string | undefined,
  ][] = [
    ['spec.providerID', spec?.providerID, 'spec.providerID', node.spec?.providerID],
    ['spec.clusterName', spec?.clusterName, cluster, annotations[cluster]],
    ['metadata.namespace', metadata.namespace, namespace, annotations[namespace]],
    ['metadata.name', metadata.name, machine, annotations[machine]],
    ['status.nodeRef.uid', status?.nodeRef?.uid ?? uid, 'metadata.uid', uid],
  ];
  const wrong = facts.flatMap(([ofMachine, wanted, ofNode, found]) => {
    const agrees = wanted && wanted === found;
    return agrees
      ? []
      : `${ofMachine} is ${wanted || 'empty'}, ${ofNode} of the Node is ${found || 'missing'}`;
  });
  return wrong.length === 0 ? undefined : wrong.join('; ');
}

type WantedPayload = Pick<MachineUpdate, 'version' | 'platform'> & {
  readonly procedure: Procedure;
};

const MAX_CHECKSUM_BYTES = 64 * 1024;
const HEADERS = { 'user-agent': 'refit-capi-extension', 'accept-encoding': 'identity' };

/** Fills in the URLs of the payload. Rejects if there is a `checksumUrl` but no checksum can be read from it. */
async function findPayload(
  { source, readText, abort }: UpdateParts,
  wanted: WantedPayload,
): Promise<Payload> {
  const { url, checksumUrl } = source;
  const [os = '', arch = ''] = wanted.platform.split('-');
  const values = {
    version: encodeURIComponent(wanted.version),
    os,
    arch,
    procedure: wanted.procedure,
  };
  const fill = (template: string): string =>
    template.replaceAll(
      /\{(version|os|arch|procedure)\}/g,
      (_all, name: keyof typeof values) => values[name],
    );
  if (checksumUrl === undefined) return { url: fill(url) };
  const from = fill(checksumUrl);
  const [, sha256] = /^\s*([0-9a-fA-F]{64})(?![0-9a-zA-Z])/.exec(await readText(from, abort)) ?? [];
  const absent = `${printableUrl(from)} does not start with a SHA-256; publish the output of sha256sum there`;
  if (sha256 === undefined) throw new RefitError('REFIT_FILE', absent);
  return { url: fill(url), sha256: sha256.toLowerCase() };
}

export async function fetchText(url: string, abort: AbortSignal): Promise<string> {
  try {
    using answer = await httpGet(
      { url, headers: HEADERS, source: '--checksum-url', environment: process.env },
      abort,
    );
    return await textIn(
      chunksOf(answer.response),
      MAX_CHECKSUM_BYTES,
      `it has more than ${MAX_CHECKSUM_BYTES} bytes`,
    );
  } catch (cause) {
    throw new RefitError('REFIT_FILE', `cannot read ${printableUrl(url)}: ${messageOf(cause)}`, {
      cause,
    });
  }
}
