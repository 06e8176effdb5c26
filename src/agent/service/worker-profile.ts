/**
 * Finds out whether the k0s process on this host runs its own agent: from its command line, or from its worker profile.
 */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { heedsSwitch, leavesAgentOn } from '../../signal/own-agent.ts';
import { messageOf } from '../../util/errors.ts';
import { isRecord, parseJson } from '../../util/json.ts';
import { parseVersion } from '../../util/version.ts';
import { writeDurably } from '../state/durable-files.ts';
import { assertTrustedPath } from '../state/trusted-path.ts';
import type { ServicePlace } from './find-services.ts';
import type { ServiceFacts } from './host.ts';
import type { TrustedAnswer } from './trusted-service.ts';

export type OwnAgentFacts = Pick<ServiceFacts, 'ownAgent' | 'ownAgentDoubt'>;

/** k0s writes its worker profile into this file of its data directory before its status socket answers. */
const PROFILE_FILE = 'worker-profile.yaml';

/**
 * The milliseconds after the start of k0s in which it may write its profile file. A worker with node-local load
 * balancing writes the file a second time while it starts. A later change of the file comes from the cluster, half a
 * minute after the start at the earliest.
 */
const START_MS = 5_000;

/** Says whether the last process of k0s runs its own agent. The answer stays valid until that process ends. */
interface Known {
  /** The boot id and the start time of the process. */
  readonly started: string;
  readonly ownAgent: boolean;
}

let known: Known | undefined;

/**
 * Returns whether k0s runs its own agent, or the reason why that is not known. Returns an empty object if the service
 * is not k0s. `record` is the path of a file that stores the answer, so that it survives a restart of the agent. Never
 * rejects.
 */
export async function ownAgentOf(
  answer: TrustedAnswer,
  { statusSocket, dataDirectory }: ServicePlace,
  record?: string,
): Promise<OwnAgentFacts> {
  const { profile, version, process } = answer;
  if (answer.ownAgent !== undefined) return { ownAgent: answer.ownAgent };
  if (profile === undefined) return {};
  // In earlier releases a worker's own agent cannot be switched off.
  if (parseVersion(version) !== undefined && !heedsSwitch(version)) return { ownAgent: true };
  if (known?.started !== process.started) known = await recordedIn(record);
  if (known?.started === process.started) return { ownAgent: known.ownAgent };
  const path = join(dataDirectory, PROFILE_FILE);
  try {
    // Guard profile-path. Nobody else decides whether k0s has an agent of its own.
    await assertTrustedPath(path);
    const data = await profileIn(await readFile(path, 'utf8'), profile);
    if (isRewritten(data) && (await isNewer(path, statusSocket)))
      return doubt(`${path} has changed since k0s was started`);
    const ownAgent = leavesAgentOn(data);
    known = { started: process.started, ownAgent };
    // If the disk is full, the answer is not stored. This has no other effect.
    if (record !== undefined)
      await writeDurably(record, `${JSON.stringify(known)}\n`).catch(() => undefined);
    return { ownAgent };
  } catch (error) {
    return doubt(messageOf(error));
  }
}

/** Returns undefined if the file is missing or damaged. */
async function recordedIn(record: string | undefined): Promise<Known | undefined> {
  if (record === undefined) return undefined;
  const found = parseJson(await readFile(record, 'utf8').catch(() => undefined));
  if (!isRecord(found)) return undefined;
  const { started, ownAgent } = found;
  return typeof started === 'string' && typeof ownAgent === 'boolean'
    ? { started, ownAgent }
    : undefined;
}

function doubt(reason: string): OwnAgentFacts {
  return {
    ownAgentDoubt: `the agent cannot tell whether k0s runs its own agent on this host: ${reason}; restart k0s here, or start the agent of Refit with --beside-k0s replace`,
  };
}

/**
 * Returns the data of the ConfigMap that k0s read. Throws if the file contains another profile than the profile on the
 * command line.
 */
async function profileIn(
  text: string,
  profile: string,
): Promise<Readonly<Record<string, unknown>>> {
  // The parser is loaded only here, because it takes memory, and an agent does nothing for months.
  const { parseForeignYaml } = await import('../../util/yaml.ts');
  const stored = parseForeignYaml(text, (why) => {
    throw new Error(`${PROFILE_FILE} cannot be read: ${why}`);
  });
  const { name, data } = isRecord(stored) ? stored : {};
  if (!isRecord(data)) throw new Error(`${PROFILE_FILE} holds no worker profile`);
  if (name !== profile)
    throw new Error(`${PROFILE_FILE} is about another profile than "${profile}"`);
  return data;
}

/** Returns true if the worker watches its profile, and writes each change into the file. */
function isRewritten({ nodeLocalLoadBalancing }: Readonly<Record<string, unknown>>): boolean {
  const balancing =
    typeof nodeLocalLoadBalancing === 'string' ? parseJson(nodeLocalLoadBalancing) : undefined;
  return isRecord(balancing) && balancing['enabled'] === true;
}

/**
 * Returns true if the file was written after k0s had started. The socket file shows the time of the start, because k0s
 * creates its status socket just after it has read the profile.
 */
async function isNewer(path: string, statusSocket: string): Promise<boolean> {
  const [file, socket] = await Promise.all([stat(path), stat(statusSocket)]);
  return file.mtimeMs > socket.mtimeMs + START_MS;
}
