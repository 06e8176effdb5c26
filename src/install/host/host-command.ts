/** Runs `refit install agent` and `refit uninstall agent` on a host with k0s or kubeadm. */
import { existsSync, globSync } from 'node:fs';
import { mkdir, readFile, realpath, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readFlagsFile } from '../../agent/flags-file.ts';
import { parseAgentOptions } from '../../agent/options.ts';
import { controlNodeName, kubeletName } from '../../agent/registration/host-name.ts';
import { createCommands } from '../../agent/service/commands.ts';
import { type FoundService, findServices } from '../../agent/service/find-services.ts';
import { allPids, executableOf } from '../../agent/service/processes.ts';
import {
  askService,
  STATUS_TIMEOUT_MS,
  type TrustedAnswer,
} from '../../agent/service/trusted-service.ts';
import { type OwnAgentFacts, ownAgentOf } from '../../agent/service/worker-profile.ts';
import { loadJournal } from '../../agent/state/journal-file.ts';
import { assertFree } from '../../agent/state/lock.ts';
import { pathsIn, removeState, upgradePathsOf } from '../../agent/state/state-directory.ts';
import { assertTrustedConfig } from '../../agent/state/trusted-config.ts';
import { loadClusterConfig } from '../../kube/config/kubeconfig.ts';
import { systemClock } from '../../util/clock.ts';
import { failing, messageOf, RefitError } from '../../util/errors.ts';
import { deleteCommands } from '../cluster-objects.ts';
import { kubeconfigWith, withCommand, withFullPaths } from '../credentials/kubeconfig.ts';
import { controlNodeRoles, objectsIn } from '../manifests.ts';
import { hasMark, hostFault, onHost, placeText } from './host-files.ts';
import { ownAgentLines } from './own-agent-lines.ts';
import { assertOwnedByRoot, BINARY, isOwnBinary, ownProgram, placeBinary } from './program.ts';
import { serviceManager } from './service-managers.ts';

/** The flags of the command. Without `credentials` the command finds credentials itself. */
type AgentInstallFlags = Partial<Readonly<Record<'credentials' | 'procedure', string>>>;
type Write = (text: string) => void;

const refuse = failing('REFIT_INSTALL');
const CONFIG = '/etc/refit';
const CREDENTIALS = join(CONFIG, 'agent.kubeconfig');
const FLAGS = join(CONFIG, 'agent.yaml');
const USUAL = {
  name: undefined,
  binary: undefined,
  stateDirectory: '/var/lib/refit',
  runDirectory: '/run/refit',
  beside: undefined,
};
/** The validity of a certificate of the agent. The agent gets the next certificate when most of this time is over. */
const VALIDITY = '168h';

export const installAgent = onHost(
  async ({ credentials, procedure }: AgentInstallFlags, write: Write) => {
    const service = ownService();
    const k0s = procedure === 'kubeadm' ? undefined : await findK0s();
    const program = await ownProgram();
    const source = await credentialsFor(k0s, program.refit, credentials);
    const { stateDirectory, runDirectory, beside } = await ownOptions(procedure);
    const isMarked = await hasMark(service.file);
    // Only one agent can run on a host. With a second agent, the service would fail and restart forever.
    if (!isMarked)
      for (const directory of [stateDirectory, runDirectory]) await assertUnused(directory);
    const isPlaced = !program.isOneFile || (await isOwnBinary());
    const foreign = [
      ...(isMarked === false ? [service.file] : []),
      ...(source.text !== undefined && (await hasMark(CREDENTIALS)) === false ? [CREDENTIALS] : []),
      ...(isPlaced === false && isMarked !== true ? [BINARY] : []),
    ];
    if (foreign.length > 0) {
      const hint = `move these files away, put settings of the service into ${service.dropIn}, and run this command again`;
      failing(
        'REFIT_INSTALL',
        'these files exist already, and refit install did not create them: ',
        {
          hint,
        },
      )(foreign.join(', '));
    }
    if (k0s)
      write(
        `found k0s ${k0s.version}, a ${k0s.role} (PID ${k0s.pid}, data in ${k0s.dataDirectory})\n`,
      );
    if (k0s) for (const line of ownAgentLines(k0s, beside)) write(`${line}\n`);
    if (!isPlaced) {
      await placeBinary();
      write(`copied this program to ${BINARY}\n`);
    }
    for (const directory of [CONFIG, stateDirectory]) {
      await mkdir(directory, { mode: 0o700, recursive: true });
      await assertOwnedByRoot(directory);
    }
    if (source.text !== undefined) {
      await placeText(CREDENTIALS, 0o600, source.text);
      write(`wrote ${CREDENTIALS}: ${source.what}\n`);
    }
    const kubeconfig = source.file ?? CREDENTIALS;
    const object = k0s?.role === 'controller' ? ['--object', 'controlnode'] : [];
    const flags = k0s ? object : ['--procedure', 'kubeadm'];
    const command = [...program.agent, 'agent', ...flags, '--kubeconfig', kubeconfig];
    await placeText(service.file, service.mode, service.textFor(command));
    await run(service.start);
    write(`wrote ${service.file}\n`);
    write(`started ${service.title}, now and at each boot; its state is in ${stateDirectory}\n`);
  },
);

function ownService() {
  if (process.getuid?.() !== 0) refuse('the agent runs as root: run this as root, too');
  return serviceManager();
}

async function run(lines: readonly string[]): Promise<void> {
  const { ask } = createCommands(process.env, systemClock);
  for (const line of lines) {
    const [program = '', ...args] = line.split(' ');
    await ask(program, ...args).catch((cause: unknown) =>
      hostFault('cannot change the service', cause),
    );
  }
}

/**
 * Returns the kubeconfig for the agent. If no file is given, it is the kubeconfig of the kubelet or, on a controller of k0s, a new
 * kubeconfig with a command that gets certificates.
 */
async function credentialsFor(
  k0s: RunningK0s | undefined,
  refit: readonly string[],
  given?: string,
) {
  if (given !== undefined) {
    await loadTrustedConfig(given);
    return {
      text: withFullPaths(await readFile(given, 'utf8'), dirname(given)),
      what: `a copy of ${given}`,
    };
  }
  if (k0s?.role !== 'controller') {
    const file = k0s ? join(k0s.dataDirectory, 'kubelet.conf') : '/etc/kubernetes/kubelet.conf';
    if (!existsSync(file)) refuse(`${file} is missing: this host has not joined its cluster yet`);
    await loadTrustedConfig(file);
    return { file };
  }
  const admin = join(k0s.dataDirectory, 'pki', 'admin.conf');
  const missing = `${admin} is missing: pass --credentials with the output of \`refit credentials\``;
  if (!existsSync(admin)) refuse(missing);
  const config = await loadTrustedConfig(admin);
  // The agent will find this name, because its unit sets no variable.
  const name = (await ownOptions()).name ?? controlNodeName(k0s, {});
  const node = k0s.runsPods ? ['--node', kubeletName(k0s)] : [];
  const options = ['--duration', VALIDITY, '--output', 'exec-credential', '--kubeconfig', admin];
  const command = [...refit, 'credentials', 'controlnode', name, ...node, ...options];
  const text = await kubeconfigWith(config, withCommand(command));
  return {
    text,
    what: `gets a certificate for controlnode ${name} with ${admin} whenever a new one is necessary`,
  };
}

async function loadTrustedConfig(path: string) {
  const config = await loadClusterConfig({ path });
  await assertTrustedConfig(config);
  return config;
}

async function assertIdle(state: string): Promise<void> {
  const { journal, airgapJournal, configurationJournal } = pathsIn(state);
  for (const path of [journal, airgapJournal]) {
    const { phase } = await loadJournal(path);
    if (phase !== 'idle')
      refuse(`the agent is upgrading this node (${phase}): wait until that has ended`);
  }
  if (existsSync(configurationJournal))
    refuse('the agent is changing files of this host: wait until that has ended');
  await assertUnused(state);
}

async function assertUnused(directory: string): Promise<void> {
  const fail = failing('REFIT_INSTALL', '', {
    hint: 'end that agent and the service that starts it, then run this again',
  });
  for (const name of globSync('*.lock.*', { cwd: directory }))
    await assertFree(join(directory, name)).catch(({ message }: Error) => fail(message));
}

/**
 * Returns the options as the agent reads them. On kubeadm hosts, the command line of the service names the procedure,
 * and this procedure allows more options.
 */
async function ownOptions(procedure = 'k0s') {
  const given = procedure === 'k0s' ? [] : ['--procedure', procedure];
  return parseAgentOptions([...(await readFlagsFile(FLAGS)), ...given]) ?? USUAL;
}

/**
 * Returns the paths of the previous binary and of downloads next to the binary of k0s. If no k0s
 * runs, the usual path of the binary is used.
 */
async function besideK0s(configured: string | undefined): Promise<string[]> {
  const running = findServices().map(({ pid }) => executableOf(pid));
  const found =
    configured === undefined
      ? running.filter((path) => path !== undefined)
      : [await realpath(configured).catch(() => configured)];
  const binaries = found.length > 0 ? found : ['/usr/local/bin/k0s'];
  const paths = binaries
    .map(upgradePathsOf)
    .flatMap(({ staging, previous }) => [staging, previous]);
  return [...new Set(paths)].filter((path) => existsSync(path));
}

/**
 * Removes the files that the installation wrote, and the files of the agent. Does not revert upgrades that the agent
 * made.
 */
export const uninstallAgent = onHost(async (write: Write) => {
  const service = ownService();
  const isMarked = await hasMark(service.file);
  if (isMarked === false) {
    const hint = `stop and remove ${service.title} yourself, then run this again`;
    throw new RefitError('REFIT_INSTALL', `refit install did not make ${service.file}`, { hint });
  }
  const isKubeadm = isMarked && (await readFile(service.file, 'utf8')).includes('kubeadm');
  const options = await ownOptions(isKubeadm ? 'kubeadm' : 'k0s').catch(({ message }: Error) => {
    const left = `the directories that ${FLAGS} names, and the files of the agent next to the binary of k0s`;
    write(`could not read the agent's options: ${message}\ndid not remove ${left}\n`);
  });
  const { stateDirectory, runDirectory } = options ?? USUAL;
  // If the options could not be read, an upgrade may still need these files, so they are not removed.
  const beside = options === undefined ? [] : await besideK0s(options.binary);
  for (const path of beside) await assertOwnedByRoot(dirname(path));
  try {
    // An agent that still runs could begin an upgrade now.
    if (isMarked) await run(service.stop);
    await assertIdle(stateDirectory);
  } catch (error) {
    // The error that stopped the removal is more important than an error of this restart.
    if (isMarked) await run(service.start).catch(() => undefined);
    throw error;
  }
  if (isMarked) {
    await run(service.disable);
    await rm(service.file);
    await run(service.forget);
    write(`removed ${service.title}\n`);
  }
  const foreign = 'refit install did not put it there';
  const rights = (await hasMark(CREDENTIALS))
    ? deleteCommands(rightsIn(await readFile(CREDENTIALS, 'utf8')))
    : [];
  const isUsed = allPids().some((pid) => pid !== process.pid && executableOf(pid) === BINARY);
  const whyForeign = isMarked || (await isOwnBinary()) ? undefined : foreign;
  const whySource = (await ownProgram()).isOneFile
    ? whyForeign
    : 'only the one-file program removes it';
  const whyLeft = new Map([
    [BINARY, isUsed ? 'another process runs it' : whySource],
    [CREDENTIALS, rights.length > 0 ? undefined : foreign],
  ]);
  for (const path of [...beside, CREDENTIALS, BINARY]) {
    if (!existsSync(path)) continue;
    const why = whyLeft.get(path);
    if (why === undefined) await rm(path, { recursive: true });
    write(why === undefined ? `removed ${path}\n` : `left ${path}: ${why}\n`);
  }
  for (const path of new Set([stateDirectory, USUAL.stateDirectory, runDirectory, CONFIG])) {
    if (!existsSync(path)) continue;
    const problem = await assertIdle(path)
      .then(async () => await removeState(path))
      .catch(messageOf);
    write(
      existsSync(path) ? `left ${path}: ${problem ?? 'it has other files'}\n` : `removed ${path}\n`,
    );
  }
  if (rights.length > 0)
    write(
      `did not remove the objects of this agent from the cluster; to remove them, run:\n${rights.join('\n')}\n`,
    );
});

/**
 * Returns the objects that the agent of a controller has in the cluster. Their names are known only
 * if the kubeconfig gets certificates with a command.
 */
function rightsIn(kubeconfig: string) {
  const valueOf = (word: string) => new RegExp(`${word}\\W+([\\w.-]+)`).exec(kubeconfig)?.[1];
  const name = valueOf('controlnode') ?? 'NAME';
  return [
    { kind: 'ControlNode', metadata: { name } },
    ...objectsIn(controlNodeRoles(name, valueOf('--node'))),
  ];
}

interface K0sFacts {
  readonly version: string;
  readonly role: 'controller' | 'worker';
  readonly runsPods: boolean;
}

interface RunningK0s extends FoundService, K0sFacts, OwnAgentFacts {}

/**
 * Returns the k0s whose status socket answers. It throws REFIT_INSTALL if there is none, or more
 * than one.
 */
async function findK0s(): Promise<RunningK0s> {
  const found: RunningK0s[] = [];
  const faults: string[] = [];
  for (const service of findServices()) {
    const answer = await askService(service.statusSocket, STATUS_TIMEOUT_MS).catch(
      (error: unknown) => {
        faults.push(`PID ${service.pid}: ${messageOf(error)}`);
      },
    );
    if (answer?.pid !== service.pid) continue;
    found.push({ ...service, ...describe(answer), ...(await ownAgentOf(answer, service)) });
  }
  const [only, ...more] = found;
  if (only === undefined) {
    if (faults.length > 0) hostFault('cannot ask k0s', faults.join(', '));
    const hint =
      'start k0s, and install the agent again; on a kubeadm host, pass --procedure kubeadm';
    throw new RefitError('REFIT_INSTALL', 'no k0s runs on this host', { hint });
  }
  if (more.length === 0) return only;
  const pids = found.map(({ pid }) => pid).join(', ');
  const hint = 'run `refit agent` by hand, with the --status-socket and --data-dir of one of them';
  throw new RefitError('REFIT_INSTALL', `several k0s processes run on this host (PIDs ${pids})`, {
    hint,
  });
}

function describe({ version, role, workloads, ownAgent }: TrustedAnswer): K0sFacts {
  // Only the command line of a controller shows whether the agent of k0s is enabled.
  const isController = ownAgent !== undefined || (role ?? '').startsWith('controller');
  return {
    version,
    role: isController ? 'controller' : 'worker',
    runsPods: !isController || workloads === true,
  };
}
