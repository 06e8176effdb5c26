/** Answers UpdateMachine: writes a request on the Node, then reports the progress. */

import { randomUUID } from 'node:crypto';
import { HOOK_GROUP, type UpdateMachineRequest, type UpdateMachineResponse } from '../../api/capi/hooks.ts';
import { platformOf } from '../../engine/observe/gather.ts';
import { nodes } from '../../kube/resources.ts';
import { isConflict } from '../../kube/status-error.ts';
import type { Node } from '../../kube/types.ts';
import { rfc3339 } from '../../util/clock.ts';
import { parseVersion } from '../../util/version.ts';
import { isDisabled } from './can-update.ts';
import { type Clients, type Found, findNode } from './find-node.ts';
import { type MachineUpdate, updateOn, withUpdate } from './machine-update.ts';
import { findPayload, type PayloadSource, type ReadText } from './payload.ts';
import { type ProgressParts, progressOf } from './progress.ts';

export interface UpdateParts extends Clients, ProgressParts {
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
 */
export async function updateMachine(
  parts: UpdateParts,
  { settings, desired: { machine } }: UpdateMachineRequest,
  abort: AbortSignal,
): Promise<UpdateMachineResponse> {
  if (isDisabled(settings)) return failure('in-place updates are disabled by the setting disableInPlaceUpdates');
  const { name, namespace = 'default' } = machine.metadata;
  const version = versionOf(machine);
  if (version === undefined)
    return failure(`Machine ${namespace}/${name}: spec.version is missing or not a version; use for example v1.36.3`);
  const wanted = { name, namespace, version };
  const found = await findNode(parts, wanted, { abort });
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
  if (kubeletOf(node) === wanted.version) return DONE;
  return await begin(parts, wanted, found, abort);
}

/** The answer DONE is final, so wait until the kubelet reports the version. */
function verified(node: Node, { version }: Wanted): UpdateMachineResponse {
  const kubelet = kubeletOf(node) ?? 'no version';
  if (kubelet === version) return DONE;
  return underWay(
    `node ${node.metadata.name} is updated, but its kubelet still reports ${kubelet} instead of ${version}`,
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

function kubeletOf({ status }: Node): string | undefined {
  return status?.nodeInfo?.kubeletVersion;
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
