/** The options that several commands share, and the types of their parsed values. */
import { InvalidArgumentError, Option } from 'commander';
import { DIALECT_NAMES } from '../api/refit/upgrade-policy.ts';
import { DEFAULT_POLICY } from '../engine/policy/rollout-policy.ts';
import type { ClusterFlags } from '../kube/config/kubeconfig.ts';
import { listedNamespaces } from '../kube/job-namespaces.ts';
import { isPageUrl, type MessageSender, PAGE_URL_ADVICE } from '../notify/receivers.ts';
import {
  formatDuration,
  isDurationTooLong,
  LONGEST_DURATION,
  parseDuration,
  parseDurationOrZero,
} from '../util/duration.ts';
import { ADDRESS_ADVICE, partsOfAddress } from '../util/listen.ts';
import type { LogLevel } from '../util/log.ts';

export interface ConnectionFlags extends ClusterFlags {
  readonly apiPort?: number;
}

const KUBECONFIG_OPTIONS: readonly Option[] = [
  new Option(
    '--kubeconfig <file>',
    "kubeconfig to use; default: KUBECONFIG, the pod's service account, ~/.kube/config",
  ),
  new Option('--context <name>', 'context of the kubeconfig; default: its current context'),
];

export const DRY_RUN = new Option(
  '--dry-run <how>',
  'write nothing: with server, the API server checks the write; with client, no write is sent',
).choices(['server', 'client']);

const API_PORT = new Option(
  '--api-port <port>',
  'port of /readyz on every controller; default: as in the kubeconfig',
).argParser(parsePort);

/** The options of commands that people run. They choose the cluster, and the user that the command impersonates. */
export const CLUSTER_OPTIONS: readonly Option[] = [
  ...KUBECONFIG_OPTIONS,
  new Option('--as <user>', 'act as this user, as with kubectl; needs the right to impersonate'),
  new Option(
    '--as-group <group>',
    'with --as: act as a member of this group; may be repeated',
  ).argParser(addValue),
];

export const CONNECTION_OPTIONS: readonly Option[] = [...CLUSTER_OPTIONS, API_PORT];

const NAMESPACE = new Option('-n, --namespace <name>', 'only plans in this namespace');
const DIALECT = new Option('--dialect <name>', 'only plans of this dialect').choices(DIALECT_NAMES);

export const FILTER_OPTIONS: readonly Option[] = [
  NAMESPACE,
  new Option('--plan <kind/name>', 'only this plan'),
  DIALECT,
];

/** The options that narrow the choice of a plan for a command whose argument is the name of the plan. */
export const PLACE_OPTIONS: readonly Option[] = [NAMESPACE, DIALECT];

const template = matching(
  /^(?i:https?):\/\/(?=[^\s/]+\/\S*\{version\})(?:[^\s{}]|\{(?:version|os|arch|procedure)\})+$/,
  'write an http or https URL that contains {version}; it may also contain {os}, {arch} and {procedure}, such as https://mirror.example.com/{version}/k0s',
);

/** The options with the addresses from which Machines of Cluster API download a version. */
export const PAYLOAD_OPTIONS: readonly Option[] = [
  new Option(
    '--payload-url <template>',
    'URL template of the download of a version; it contains {version}, and may contain {os}, {arch} and {procedure}',
  )
    .argParser(template)
    .makeOptionMandatory(),
  new Option(
    '--checksum-url <template>',
    'URL template of the SHA-256 of the download, with the same placeholders; default: no checksum is checked',
  ).argParser(template),
];

export const HEALTH_ADDRESS = new Option(
  '--health-address <host:port>',
  'serve /healthz, /readyz and /metrics at this address',
).argParser(parseAddress);

export const LOG_LEVEL = new Option('--log-level <level>', 'lowest level to log')
  .choices(['debug', 'info', 'warn', 'error'])
  .default('info');

/** The option of every process that may lead, because a leader creates the Jobs of policies. */
export const JOB_NAMESPACES = new Option(
  '--job-namespaces <names>',
  'namespaces in which hooks and health checks of policies may run Jobs, separated by commas; default: refit-hooks',
).argParser((text) => {
  const names = listedNamespaces(text);
  if (typeof names !== 'string') return names;
  throw new InvalidArgumentError(names);
});

/** The flags of every process that takes part in leader election. */
export interface ControllerFlags extends ConnectionFlags {
  /** The duration of the lease in milliseconds. */
  readonly leaseDuration: number;
  /** The deadline of a target in milliseconds; Infinity for no deadline. */
  readonly targetDeadline: number;
  readonly healthAddress?: string;
  readonly logLevel: LogLevel;
  readonly jobNamespaces?: readonly string[];
  readonly clusterName?: string;
  readonly uiUrl?: string;
}

const { targetDeadlineMs } = DEFAULT_POLICY;

/** The options with which a leader says in its messages where they come from. */
const SENDER_OPTIONS: readonly Option[] = [
  new Option(
    '--cluster-name <name>',
    'name of the cluster in messages and on the page; default: the context of the kubeconfig',
  ),
  new Option(
    '--ui-url <url>',
    'address of the page, to which messages link, such as https://refit.example.com',
  ).argParser(parsePageUrl),
];

/** Parses the address of the page. Messages append a fragment to it. */
function parsePageUrl(text: string): string {
  if (isPageUrl(text)) return text;
  throw new InvalidArgumentError(PAGE_URL_ADVICE);
}

/** Returns what messages say about the cluster. */
export function senderOf({
  clusterName,
  uiUrl,
}: Pick<ControllerFlags, 'clusterName' | 'uiUrl'>): MessageSender {
  return { cluster: clusterName, pageUrl: uiUrl };
}

export const CONTROLLER_OPTIONS: readonly Option[] = [
  ...KUBECONFIG_OPTIONS,
  API_PORT,
  leaseDuration('how long the lease stays valid without renewal, in whole seconds'),
  new Option(
    '--target-deadline <time>',
    'time for one node from its signal on; after that the node and its plan have failed. 0: no deadline',
  )
    // 0 means that there is no deadline.
    .argParser((text) => parseTimeOrZero(text) || Number.POSITIVE_INFINITY)
    .default(targetDeadlineMs, formatDuration(targetDeadlineMs)),
  HEALTH_ADDRESS,
  LOG_LEVEL,
  JOB_NAMESPACES,
  ...SENDER_OPTIONS,
];

/** Returns the option `--output` with these choices; the first is the default. */
export function outputForm(first: string, ...others: readonly string[]): Option {
  return new Option('-o, --output <form>', 'output format')
    .choices([first, ...others])
    .default(first);
}

/** Returns the option `--lease-duration`, which parses to milliseconds. */
export function leaseDuration(description: string): Option {
  return new Option('--lease-duration <time>', description)
    .argParser(parseLease)
    .default(15_000, '15s');
}

/**
 * Returns the duration in milliseconds. Throws InvalidArgumentError if `text` is not a duration.
 */
export function parseTime(text: string): number {
  return (
    parseDuration(text) ??
    refuseTime(text, 'a duration is a number above zero with a unit (ms, s, m or h), such as 90s')
  );
}

/** Works like `parseTime`, for an option that may also be zero. */
export function parseTimeOrZero(text: string): number {
  return (
    parseDurationOrZero(text) ??
    refuseTime(text, 'write 0, or a number with a unit (ms, s, m or h), such as 90s')
  );
}

function refuseTime(text: string, advice: string): never {
  throw new InvalidArgumentError(
    isDurationTooLong(text) ? `the longest duration is ${LONGEST_DURATION}` : advice,
  );
}

/** Returns a parser that accepts only a text that matches `pattern`. For any other text it throws InvalidArgumentError with `advice`. */
export function matching(pattern: RegExp, advice: string) {
  return (text: string): string => {
    if (pattern.test(text)) return text;
    throw new InvalidArgumentError(advice);
  };
}

/** Returns `text` if it is an address of the form `host:port`. Otherwise throws InvalidArgumentError. */
export function parseAddress(text: string): string {
  if (partsOfAddress(text)) return text;
  throw new InvalidArgumentError(ADDRESS_ADVICE);
}

/** Returns the number of a port. Throws InvalidArgumentError if `text` is not the number of a port. */
export function parsePort(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port;
  throw new InvalidArgumentError('a port is a number from 1 to 65535');
}

/**
 * Returns the duration of a lease in milliseconds. Throws InvalidArgumentError for fractions of a
 * second, because a Lease stores whole seconds.
 */
function parseLease(text: string): number {
  const milliseconds = parseTime(text);
  if (milliseconds % 1000 === 0) return milliseconds;
  throw new InvalidArgumentError('write whole seconds, such as 15s');
}

/** Returns the number of lines. Throws InvalidArgumentError unless it is a whole number from 1 to 10,000. */
export function parseLines(text: string): number {
  const lines = Number(text);
  if (/^\d{1,5}$/.test(text) && lines >= 1 && lines <= 10_000) return lines;
  throw new InvalidArgumentError('write a number from 1 to 10000');
}

export const NO_READY = new Option('--no-ready', 'leave out the checks of refit ready');

export const ACCEPT_CHECK = new Option(
  '--accept <check=reason>',
  'show the blockers of this check of refit ready as warnings, with the reason; may be repeated',
).argParser(addValue);

/** Parses an option that may be repeated: returns all of its values, in order. */
export function addValue(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}
