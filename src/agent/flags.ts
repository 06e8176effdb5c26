/** Holds the one table of the flags of `refit agent`, from which both the parser and the help text are made. */
import { type ParseArgsConfig, type ParseArgsOptionDescriptor, parseArgs } from 'node:util';
import { usageError } from '../util/errors.ts';

interface Flag {
  /** The name of the value in the help text. A flag without `value` is a switch, which is off unless it is given. */
  readonly value?: string;
  /** The value that applies if the flag is not given. */
  readonly preset?: string;
  /** The preset in the unit that the help text shows, such as `1 GiB`. */
  readonly inWords?: string;
  /**
   * A clause for the help text. It says what happens if the flag is not given, for a flag without a
   * preset.
   */
  readonly otherwise?: string;
  /** Says in the help text what the flag does. */
  readonly description?: string;
}

/**
 * The flags are in the order of the help text. The limits of 6 h and 60 s are those of the original agent. The original
 * agent limits neither the size of a download nor the time for a restart.
 */
const FLAGS = {
  object: {
    value: 'kind',
    preset: 'node',
    description: 'node (workers) or controlnode (controllers)',
  },
  name: {
    value: 'name',
    otherwise: "default: --hostname-override of the kubelet, AUTOPILOT_HOSTNAME, the host's name",
    description: 'name of the object',
  },
  kubeconfig: {
    value: 'file',
    otherwise: "default: KUBECONFIG, the pod's service account, ~/.kube/config",
  },
  procedure: {
    value: 'name',
    preset: 'k0s',
    description: 'what runs on this host: k0s or kubeadm',
  },
  'node-configuration': {
    value: 'list',
    preset: '',
    otherwise: 'default: none',
    description:
      'what Cluster API may change on this host: files, folders, user:NAME (keys) and kubelet',
  },
  'kubeadm-config': {
    value: 'file',
    otherwise: 'default: none',
    description:
      'file with an UpgradeConfiguration for kubeadm, which sets options such as patches',
  },
  'status-socket': {
    value: 'path',
    otherwise: 'default: from the running service',
    description: 'status socket of the service',
  },
  'data-dir': {
    value: 'directory',
    otherwise: 'default: from the running service',
    description: 'data directory of the service',
  },
  binary: {
    value: 'path',
    otherwise: 'default: the file that its process executes',
    description: "the service's binary",
  },
  'state-dir': {
    value: 'directory',
    preset: '/var/lib/refit',
    description: 'directory of the journal and the lock',
  },
  'run-dir': {
    value: 'directory',
    otherwise: 'default /run/refit for root, else the state directory',
    description: 'directory of the lock that lets only one agent run on a host',
  },
  mode: {
    value: 'mode',
    otherwise: 'default: from the service',
    description: 'role of a controller: controller or controller+worker',
  },
  'api-address': {
    value: 'ip',
    otherwise: "default: from the service, else the host's first address",
    description: "address of a controller's API server",
  },
  'max-download-bytes': {
    value: 'n',
    preset: '1073741824',
    inWords: '1 GiB',
    description: 'size limit of a download',
  },
  'disk-reserve': {
    value: 'n',
    preset: '134217728',
    inWords: '128 MiB',
    description: 'bytes that a download leaves free on its disk, unless a policy sets them',
  },
  'allow-insecure-redirect': {
    description:
      'follow a redirect of a download from https to plain http, as the original agent does',
  },
  'download-timeout': {
    value: 'time',
    preset: '6h',
    description: 'time limit for all attempts of a download together, unless a policy sets one',
  },
  'stall-timeout': {
    value: 'time',
    preset: '60s',
    description: 'how long a download may receive nothing before it is tried again',
  },
  'restart-timeout': {
    value: 'time',
    preset: '90s',
    description: 'how long the new version may take to answer; after that the agent rolls back',
  },
  soak: {
    value: 'time',
    preset: '5s',
    description: 'how long the new process must keep running after its first answer; 0: not at all',
  },
  'ready-timeout': {
    value: 'time',
    preset: '2m',
    description:
      'how long the node may take to become Ready after the first answer of the new version',
  },
  'require-sha256': { description: 'refuse plans without a sha256' },
  'require-https': { description: 'refuse downloads over plain http, redirects included' },
  'unverified-downloads': {
    value: 'w',
    preset: 'refuse',
    description: 'refuse or allow downloads with neither https nor a sha256',
  },
  'allowed-hosts': {
    value: 'list',
    description:
      'download only from these hosts, also after a redirect; for example mirror.example:8443,*.k0sproject.io',
  },
  'lowest-version': { value: 'version', description: 'refuse versions below this one' },
  'refuse-downgrade': { description: 'refuse versions below the running one' },
  'allow-cgroup-v1': {
    description:
      'accept v1.35 and later, even if the kubelet of this host seems to refuse to run with cgroup v1',
  },
  'max-signal-age': {
    value: 'time',
    preset: '168h',
    description: 'refuse signals that are older than this; 0: no limit',
  },
  'beside-k0s': {
    value: 'what',
    preset: 'observe',
    description: 'what to do when k0s runs its own agent: observe, refuse or replace',
  },
  'exclude-from-plans': {
    value: 'roles',
    otherwise: 'default: none',
    description:
      'if this host has this role (controller, worker or both), let plans that include the host end as Restricted',
  },
  config: {
    value: 'file',
    preset: '/etc/refit/agent.yaml',
    description: 'file with more flags, one "name: value" per line',
  },
  'log-level': {
    value: 'level',
    preset: 'info',
    description: 'debug, info, warn or error',
  },
} as const satisfies Readonly<Record<string, Flag>>;

type Flags = typeof FLAGS;

interface WithPreset {
  readonly preset: string;
}
interface WithValue {
  readonly value: string;
}
/**
 * The value is a string if the flag has a preset, a string or undefined if it takes a value, and otherwise a boolean.
 */
type ValueWithoutPreset<F> = F extends WithValue ? string | undefined : boolean;
type ValueOf<F> = F extends WithPreset ? string : ValueWithoutPreset<F>;

/** The value of each flag on the command line, as text. No value has been validated yet. */
export type FlagValues = { readonly [Name in keyof Flags]: ValueOf<Flags[Name]> } & {
  readonly help?: boolean;
};

const ROWS: readonly (readonly [string, Flag])[] = Object.entries(FLAGS);

const OPTIONS: NonNullable<ParseArgsConfig['options']> = {
  ...Object.fromEntries(ROWS.map(([name, flag]) => [name, optionOf(flag)] as const)),
  help: { type: 'boolean', short: 'h' },
};

function optionOf({ value, preset }: Flag): ParseArgsOptionDescriptor {
  if (value === undefined) return { type: 'boolean', default: false };
  return preset === undefined ? { type: 'string' } : { type: 'string', default: preset };
}

/** Returns the values of all flags, presets included. Throws REFIT_USAGE if a flag is unknown or lacks its value. */
export function readFlags(args: readonly string[]): FlagValues {
  try {
    return parseArgs({ args: [...args], options: OPTIONS }).values as unknown as FlagValues;
  } catch (error) {
    throw usageError(error);
  }
}

function titleOf([name, { value }]: readonly [string, Flag]): string {
  return value === undefined ? `--${name}` : `--${name} <${value}>`;
}

function explanationOf({ description, preset, inWords, otherwise }: Flag): string {
  const ofPreset = preset === undefined ? undefined : `default ${preset}`;
  const amount = inWords === undefined ? '' : ` (${inWords})`;
  const whenAbsent = otherwise ?? (ofPreset && `${ofPreset}${amount}`);
  return [description, whenAbsent].filter((part) => part !== undefined).join('; ');
}

const WIDEST = Math.max(...ROWS.map((row) => titleOf(row).length));

const LINES = ROWS.map((row) => {
  const [, flag] = row;
  return `  ${titleOf(row).padEnd(WIDEST)} ${explanationOf(flag)}`;
});

/** The help text of `refit agent --help`. */
export const AGENT_HELP = `Usage: refit agent [options]

Upgrades the node it runs on when its Node or ControlNode carries a signal.

${LINES.join('\n')}

Times: a number with ms, s, m or h, such as 90s.
`;
