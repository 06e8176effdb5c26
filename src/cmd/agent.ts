/** Owns the agent process: names everything that works in it. */
import { existsSync } from 'node:fs';
import * as files from 'node:fs/promises';
import { mkdir, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Agent } from '../agent/agent.ts';
import type { Duties } from '../agent/duties.ts';
import { perform } from '../agent/effects.ts';
import { loadJournal, saveJournal } from '../agent/journal-file.ts';
import { takeLock } from '../agent/lock.ts';
import { observeHost } from '../agent/observe-host.ts';
import type { AgentOptions } from '../agent/options.ts';
import { AGENT_HELP, parseAgentOptions } from '../agent/options.ts';
import { OwnObject } from '../agent/own-object.ts';
import { pathsIn } from '../agent/paths.ts';
import { endProcess } from '../agent/processes.ts';
import type { Restarter } from '../agent/restarter.ts';
import { VERSION } from '../cli/version.ts';
import type { KubeClient } from '../kube/client.ts';
import { createClient } from '../kube/http-client.ts';
import { loadClusterConfig } from '../kube/kubeconfig.ts';
import type { Resource } from '../kube/resources.ts';
import { isNotFound } from '../kube/status-error.ts';
import { SIGNAL_OBJECTS } from '../signal/names.ts';
import { systemClock } from '../util/clock.ts';
import { EXIT, messageOf, RefitError } from '../util/errors.ts';
import { jsonLogger } from '../util/log.ts';

const tools = { clock: systemClock, random: Math.random };
const imagesDirectory = '/var/lib/k0s/images';
const restarter: Restarter = { restart: async (target) => await endProcess(target, 'SIGTERM') };
const duties: Duties = {
  whoCordons: async () => await Promise.resolve('self'),
  hasCordon: async () => await Promise.resolve(false),
  makeWay: async () => await Promise.resolve(),
  takeBack: async () => await Promise.resolve(),
};

/** Runs until `stop` aborts; resolves with the exit code, rejects with a RefitError where it cannot start. */
export async function runAgent(args: readonly string[], stop: AbortSignal): Promise<number> {
  const options = parseAgentOptions(args);
  if (options === undefined) {
    process.stdout.write(AGENT_HELP);
    return EXIT.ok;
  }
  const { name, stateDirectory, limits, statusSocket, restartTimeoutMs } = options;
  const log = jsonLogger(
    (line) => process.stderr.write(line),
    () => systemClock.now(),
    options.logLevel,
    { node: name },
  );
  const userAgent = `refit-agent/${VERSION} (${name})`;
  const config = await loadClusterConfig({ path: options.kubeconfig });
  const paths = await prepareState(options);
  const binary = options.binary === undefined ? {} : { binary: await findBinary(options.binary) };
  const client = createClient(config, { clock: systemClock, userAgent });
  const resource = SIGNAL_OBJECTS[options.object];
  const effects = { ...tools, stateDirectory, imagesDirectory, userAgent, limits, duties, restarter, files, log };
  const agent = new Agent({
    ...tools,
    object: new OwnObject({ ...tools, client, resource, name, log }),
    loadJournal: async () => await loadJournal(paths.journal),
    saveJournal: async (journal) => await saveJournal(paths.journal, journal),
    observe: async (journal) => await observeHost({ statusSocket, ...binary }, journal),
    perform: async (step, journal, signal) => await perform(step, journal, effects, signal),
    duties,
    times: { restartTimeoutMs, soakMs: 0, readyTimeoutMs: 120_000 },
    accepts: options.object === 'node' ? ['k0supdate', 'airgapupdate'] : ['k0supdate'],
    log,
  });
  try {
    const { phase } = await loadJournal(paths.journal);
    // What was begun goes on without an API server, which may run on this very host.
    if (phase === 'idle') await meet(client, resource, name, stop);
    log.info('agent started', { version: VERSION, object: options.object });
    await agent.run(stop);
  } finally {
    client.close();
  }
  log.info('agent stopped');
  return EXIT.ok;
}

/** Rejects where the object cannot be read, so that whoever starts the agent learns it; one that is to come is waited for. */
async function meet(client: KubeClient, resource: Resource, name: string, signal: AbortSignal): Promise<void> {
  try {
    await client.get(resource, name, { signal });
  } catch (error) {
    const isAbsent = isNotFound(error) && error.status.details?.name !== undefined;
    if (!isAbsent) throw error;
  }
}

async function prepareState({ stateDirectory }: AgentOptions): Promise<ReturnType<typeof pathsIn>> {
  const paths = pathsIn(stateDirectory);
  try {
    await makeDirectory(stateDirectory);
    await takeLock(paths.lock, process.pid);
    return paths;
  } catch (error) {
    if (error instanceof RefitError) throw error;
    throw new RefitError('REFIT_FILE', `cannot use the state directory ${stateDirectory}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/**
 * Step by step: where a parent exists and still takes no directory, as in /proc, Node's own recursion would never end.
 */
async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return;
    const parent = dirname(path);
    if (code !== 'ENOENT' || existsSync(parent)) throw error;
    await makeDirectory(parent);
    await mkdir(path, { mode: 0o700 });
  }
}

/** The file itself: a symbolic link to it must not become a file. */
async function findBinary(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    throw new RefitError('REFIT_FILE', `there is no binary at ${path}`, { cause: error });
  }
}
