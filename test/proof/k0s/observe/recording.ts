/** Writes what real k0s did in the form of the recordings in test/fixtures/autopilot, to which the doubles are held. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../../../src/util/clock.ts';
import { until } from '../../wait.ts';
import type { AuditedWrite, AuditLogs } from './audit.ts';

/** The programs whose writes are not those of autopilot. */
const OTHERS = /^(?:kubelet|kube-|kubectl|node |refit)/;
const RESOURCES = new Set([
  'controlnodes',
  'controlnodes/status',
  'nodes',
  'plans',
  'plans/status',
  'pods/eviction',
]);

/** If autopilot has written nothing for this time, it has finished. */
const QUIET_MS = 5000;

/** Waits until autopilot writes nothing any more, so that a recording holds its last write too. */
export async function untilQuiet(audit: AuditLogs): Promise<void> {
  await until('autopilot to write nothing more', 120, () => {
    const last = audit.writes().findLast(isOfAutopilot);
    return last === undefined || systemClock.now() - last.at >= QUIET_MS;
  });
}

/** Writes one situation to `folder`/`name`.jsonl: from the creation of the Plan on, one call on each line. */
export async function writeRecording(
  folder: string,
  name: string,
  writes: readonly AuditedWrite[],
): Promise<void> {
  const start = writes.findIndex(({ verb, resource }) => verb === 'create' && resource === 'plans');
  const begun = writes[start]?.at;
  if (begun === undefined) throw new Error('no Plan was created');
  const lines = writes
    .slice(start)
    .filter((write, index) => index === 0 || isOfAutopilot(write))
    .map((write) => JSON.stringify(lineOf(write, begun)));
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `${name}.jsonl`), `${lines.join('\n')}\n`);
}

/** The Lease of a node says that the leader may cordon it. Leases for an election, and those of kubelets, do not count. */
function isOfAutopilot({ resource, agent, verb, namespace }: AuditedWrite): boolean {
  if (OTHERS.test(agent)) return false;
  if (resource === 'leases') return verb === 'patch' && namespace === 'kube-node-lease';
  return RESOURCES.has(resource);
}

function lineOf(
  { at, by, via, verb, resource, name, code, sent }: AuditedWrite,
  begun: number,
): object {
  const who = { t: (at - begun) / 1000, by, via, verb, resource, name, code };
  if (resource === 'leases') return who;
  if (resource === 'pods/eviction') return { ...who, name: 'pod' };
  if (verb === 'patch') return { ...who, body: sent };
  const { metadata, spec, status } = (sent ?? {}) as {
    metadata?: { annotations?: Readonly<Record<string, string>> };
    spec?: { unschedulable?: boolean };
    status?: unknown;
  };
  if (resource === 'plans') return { ...who, spec };
  if (resource === 'plans/status') return { ...who, status };
  const annotations = Object.fromEntries(
    Object.entries(metadata?.annotations ?? {}).filter(([key]) => /k0sproject\.io\//.test(key)),
  );
  if (resource === 'controlnodes/status') return { ...who, annotations, status };
  if (resource === 'controlnodes') return { ...who, annotations };
  return { ...who, annotations, unschedulable: spec?.unschedulable ?? false };
}
