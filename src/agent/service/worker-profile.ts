/** Finds out whether the k0s process on this host runs its own agent: from its command line, or from its worker profile. */
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

/** k0s writes the profile that it starts a worker with into this file of its data directory, before its status socket answers. */
const PROFILE_FILE = 'worker-profile.yaml';

/** A worker with node-local load balancing writes its profile a second time while it starts. k0s may change it half a minute later. */
const START_MS = 5_000;

/** What was found out about the last process: it stays true for as long as the process lives. */
interface Known {
  /** Boot id and start time of the process. */
  readonly started: string;
  readonly ownAgent: boolean;
}

let known: Known | undefined;

/** Empty for a service that is not k0s. `record` is a file that keeps the answer when the agent restarts. Never rejects. */
export async function ownAgentOf(
  answer: TrustedAnswer,
  { statusSocket, dataDirectory }: ServicePlace,
  record?: string,
): Promise<OwnAgentFacts> {
  const { profile, version, process } = answer;
  if (answer.ownAgent !== undefined) return { ownAgent: answer.ownAgent };
  if (profile === undefined) return {};
  // Before that release, a worker's own agent cannot be switched off.
  if (parseVersion(version) !== undefined && !heedsSwitch(version)) return { ownAgent: true };
  if (known?.started !== process.started) known = await recordedIn(record);
  if (known?.started === process.started) return { ownAgent: known.ownAgent };
  const path = join(dataDirectory, PROFILE_FILE);
  try {
    await assertTrustedPath(path);
    const data = await profileIn(await readFile(path, 'utf8'), profile);
    if (isRewritten(data) && (await isNewer(path, statusSocket)))
      return doubt(`${path} has changed since k0s was started`);
    const ownAgent = leavesAgentOn(data);
    known = { started: process.started, ownAgent };
    // A full disk costs only the memory.
    if (record !== undefined)
      await writeDurably(record, `${JSON.stringify(known)}\n`).catch(() => undefined);
    return { ownAgent };
  } catch (error) {
    return doubt(messageOf(error));
  }
}

/** Undefined for a file that is missing or damaged. */
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

/** The data of the ConfigMap that k0s read. Throws if the file is not about the profile of the command line. */
async function profileIn(
  text: string,
  profile: string,
): Promise<Readonly<Record<string, unknown>>> {
  // Loaded only here: agents rest for months, and the parser takes memory.
  const { parseForeignYaml } = await import('../../util/yaml.ts');
  const [stored] = parseForeignYaml(text, (why) => {
    throw new Error(`${PROFILE_FILE} cannot be read: ${why}`);
  });
  const { name, data } = isRecord(stored) ? stored : {};
  if (!isRecord(data)) throw new Error(`${PROFILE_FILE} holds no worker profile`);
  if (name !== profile)
    throw new Error(`${PROFILE_FILE} is about another profile than "${profile}"`);
  return data;
}

/** Such a worker watches its profile, and writes each change into the file. */
function isRewritten({ nodeLocalLoadBalancing }: Readonly<Record<string, unknown>>): boolean {
  const balancing =
    typeof nodeLocalLoadBalancing === 'string' ? parseJson(nodeLocalLoadBalancing) : undefined;
  return isRecord(balancing) && balancing['enabled'] === true;
}

/** k0s makes its status socket just after it has read the profile. */
async function isNewer(path: string, statusSocket: string): Promise<boolean> {
  const [file, socket] = await Promise.all([stat(path), stat(statusSocket)]);
  return file.mtimeMs > socket.mtimeMs + START_MS;
}
