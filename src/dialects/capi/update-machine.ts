/** Answers UpdateMachine: writes a request on the Node, then reports the progress. */
import { randomUUID } from 'node:crypto';
import { HOOK_GROUP, type UpdateMachineRequest, type UpdateMachineResponse } from '../../api/capi/hooks.ts';
import { CONTROL_PLANE_LABEL, type Machine, NODE_ANNOTATIONS } from '../../api/capi/machine.ts';
import type { Payload, Role } from '../../engine/model/recorded.ts';
import { platformOf } from '../../engine/observe/gather.ts';
import type { KubeClient, RequestOptions } from '../../kube/client.ts';
import { kubeletVersionOf, nodes } from '../../kube/resources.ts';
import { isConflict, isNotFound } from '../../kube/status-error.ts';
import type { Node } from '../../kube/types.ts';
import { rfc3339 } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import { printableUrl, withoutUserinfo } from '../../util/printable-url.ts';
import { parseVersion } from '../../util/version.ts';
import { kubernetesPartOf, mayBePartOf } from '../../versions/release-parts.ts';
import { orphanOn } from './orphaned-work.ts';
import { type ProgressParts, progressOf } from './progress.ts';
import { type MachineUpdate, updateOn, withUpdate } from './rollout.ts';

export interface UpdateParts extends ProgressParts {
  /** Of the cluster with the Machines; may be that with the Nodes. */
  readonly management: KubeClient;
  readonly source: PayloadSource;
  readonly readText: ReadText;
}

interface Wanted {
  readonly namespace: string;
  readonly name: string;
  readonly version: string;
}

/**
 * Idempotent, on any replica: all state is on the Node. Rejects if an API server or the payload's checksum is unavailable.
 *
 * @param live the Machine in the API, which wants the version of the call
 */
export async function updateMachine(
  parts: UpdateParts,
  { desired: { machine } }: UpdateMachineRequest,
  live: Machine,
  abort: AbortSignal,
): Promise<UpdateMachineResponse> {
  const { name, namespace = 'default' } = machine.metadata;
  const version = versionOf(machine);
  if (version === undefined)
    return failure(`Machine ${namespace}/${name}: spec.version is missing or not a version; use for example v1.36.3`);
  const wanted = { name, namespace, version };
  const found = await findNode(parts.workload, wanted, live, { abort });
  return typeof found === 'string' ? failure(found) : await follow(parts, wanted, found, abort);
}

async function follow(parts: UpdateParts, wanted: Wanted, found: Found, abort: AbortSignal) {
  const { node } = found;
  const update = updateOn(node);
  const progress = update && (await progressOf(parts, node, abort));
  const isSame = update?.version === wanted.version && update.machine === machineOf(wanted);
  if (progress && !progress.isOver) {
    // An earlier update must end first: a node must not be left half upgraded.
    return underWay(isSame ? progress.message : `waiting for the update to ${update.version}: ${progress.message}`);
  }
  if (progress && isSame) return progress.failed ? failure(progress.message) : verified(node, wanted);
  if (kubeletVersionOf(node) === wanted.version) {
    if (orphanOn(node) === undefined) return DONE;
    return underWay(`node ${node.metadata.name} is being freed from an update whose request was removed`);
  }
  return await begin(parts, wanted, found, abort);
}

/** The answer DONE is final, so wait until the kubelet reports the version. */
function verified(node: Node, { version }: Wanted): UpdateMachineResponse {
  const kubelet = kubeletVersionOf(node) ?? 'no version';
  if (mayBePartOf(kubelet, version)) return DONE;
  return underWay(
    `node ${node.metadata.name} is updated, but its kubelet still reports ${kubelet} instead of ${kubernetesPartOf(version)}`,
  );
}

async function begin(parts: UpdateParts, wanted: Wanted, { node, role }: Found, abort: AbortSignal) {
  const { source, readText, workload, clock } = parts;
  const { name } = node.metadata;
  const platform = platformOf(node);
  if (platform === undefined) return failure(`node ${name} has no labels kubernetes.io/os and kubernetes.io/arch`);
  const payload = await findPayload(source, { version: wanted.version, platform }, readText, abort);
  const update: MachineUpdate = {
    uid: randomUUID(),
    machine: machineOf(wanted),
    version: wanted.version,
    role,
    requested: rfc3339(clock.now()),
    platform,
    ...payload,
  };
  try {
    await workload.replace(nodes, withUpdate(node, update), { abort });
  } catch (error) {
    // Another replica or the kubelet wrote the Node: the next call reads it again.
    if (!isConflict(error)) throw error;
  }
  return underWay(`node ${name} is about to start`);
}

function versionOf({ spec }: UpdateMachineRequest['desired']['machine']): string | undefined {
  const version = (spec as { version?: unknown } | undefined)?.version;
  return typeof version === 'string' && parseVersion(version) ? version : undefined;
}

function machineOf({ namespace, name }: Wanted): string {
  return `${namespace}/${name}`;
}

const HEAD = { apiVersion: HOOK_GROUP, kind: 'UpdateMachineResponse' } as const;
/** Seconds: calls are cheap, and steps take seconds to minutes. */
const RETRY_SECONDS = 2;

export const DONE: UpdateMachineResponse = { ...HEAD, status: 'Success', retryAfterSeconds: 0 };

export function underWay(message: string): UpdateMachineResponse {
  return { ...HEAD, status: 'Success', message, retryAfterSeconds: RETRY_SECONDS };
}

/** Needs a person; the caller retries anyway, with a growing backoff. */
export function failure(message: string): UpdateMachineResponse {
  return { ...HEAD, status: 'Failure', message, retryAfterSeconds: 0 };
}

interface Found {
  readonly node: Node;
  readonly role: Role;
}

/** Returns a message if the Machine has no Node that is surely its own. */
async function findNode(
  workload: KubeClient,
  { namespace, name }: Wanted,
  machine: Machine,
  options: RequestOptions,
): Promise<Found | string> {
  const title = `Machine ${namespace}/${name}`;
  const { providerID } = machine.spec ?? {};
  const node = await nodeOf(workload, machine.status?.nodeRef?.name, providerID, options);
  if (!node) return `${title} has no Node yet`;
  const disagreement = disagreementOf(machine, node);
  if (disagreement !== undefined)
    return `${title} and node ${node.metadata.name} do not belong together: ${disagreement}; check that --kubeconfig is for the cluster of this Machine`;
  return { node, role: machine.metadata.labels?.[CONTROL_PLANE_LABEL] === undefined ? 'worker' : 'controller' };
}

/** Nodes of two clusters may have the same name, so the name alone proves nothing. Undefined if everything agrees. */
function disagreementOf({ metadata, spec, status }: Machine, node: Node): string | undefined {
  const { annotations = {}, uid = '' } = node.metadata;
  const facts: [ofMachine: string, wanted: string, ofNode: string, found: string | undefined][] = [
    ['spec.providerID', spec?.providerID ?? '', 'spec.providerID', node.spec?.providerID],
    ['spec.clusterName', spec?.clusterName ?? '', NODE_ANNOTATIONS.cluster, annotations[NODE_ANNOTATIONS.cluster]],
    [
      'metadata.namespace',
      metadata.namespace ?? '',
      NODE_ANNOTATIONS.namespace,
      annotations[NODE_ANNOTATIONS.namespace],
    ],
    ['metadata.name', metadata.name, NODE_ANNOTATIONS.machine, annotations[NODE_ANNOTATIONS.machine]],
    ['status.nodeRef.uid', status?.nodeRef?.uid ?? uid, 'metadata.uid', uid],
  ];
  const wrong = facts.filter(([, wanted, , found]) => wanted === '' || wanted !== found);
  if (wrong.length === 0) return undefined;
  return wrong
    .map(
      ([ofMachine, wanted, ofNode, found]) =>
        `${ofMachine} is ${wanted || 'empty'}, ${ofNode} of the Node is ${found || 'missing'}`,
    )
    .join('; ');
}

async function nodeOf(
  client: KubeClient,
  name: string | undefined,
  providerID: string | undefined,
  options: RequestOptions,
): Promise<Node | undefined> {
  if (name !== undefined) return await orUndefined(client.get(nodes, name, options));
  if (!providerID) return undefined;
  return (await client.listAll(nodes, options)).items.find(({ spec }) => spec?.providerID === providerID);
}

/** Undefined if there is no such object; a 404 of something else, such as of the kind, rejects. */
export async function orUndefined<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isNotFound(error) && error.status.details?.name !== undefined) return undefined;
    throw error;
  }
}

export interface PayloadSource {
  /** May contain `{version}`, `{os}` and `{arch}`. */
  readonly url: string;
  /** Template for the output of sha256sum; without it the payload is not verified. */
  readonly checksumUrl?: string | undefined;
}

export type ReadText = (url: string, abort: AbortSignal) => Promise<string>;

const MAX_CHECKSUM_BYTES = 4096;

/** `platform` is `<os>-<architecture>`. Rejects if there is a `checksumUrl` without a readable checksum. */
export async function findPayload(
  { url, checksumUrl }: PayloadSource,
  { version, platform }: { readonly version: string; readonly platform: string },
  readText: ReadText,
  abort: AbortSignal,
): Promise<Payload> {
  const [os = '', arch = ''] = platform.split('-');
  const fill = (template: string): string =>
    Object.entries({ version: encodeURIComponent(version), os, arch }).reduce(
      (text, [name, value]) => text.replaceAll(`{${name}}`, value),
      template,
    );
  if (checksumUrl === undefined) return { url: fill(url) };
  const from = fill(checksumUrl);
  const [, sha256] = /^\s*([0-9a-fA-F]{64})(?![0-9a-zA-Z])/.exec(await readText(from, abort)) ?? [];
  if (sha256 === undefined)
    throw new RefitError(
      'REFIT_FILE',
      `${printableUrl(from)} does not start with a SHA-256; publish the output of sha256sum there`,
    );
  return { url: fill(url), sha256: sha256.toLowerCase() };
}

export async function fetchText(url: string, abort: AbortSignal): Promise<string> {
  const { address, headers } = withoutUserinfo(url);
  const response = await fetch(address, { headers, signal: abort });
  if (!response.ok) throw new RefitError('REFIT_FILE', `${printableUrl(url)} returned HTTP ${response.status}`);
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    parts.push(part);
    length += part.length;
    if (length >= MAX_CHECKSUM_BYTES) break;
  }
  return Buffer.concat(parts).subarray(0, MAX_CHECKSUM_BYTES).toString('utf8');
}
