/** Owns the command tree of `refit`: what can be asked for, with which options. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { DEFAULT_POLICY } from '../engine/policy/rollout-policy.ts';
import { formatDuration, parseDuration } from '../util/duration.ts';
import { RefitError } from '../util/errors.ts';
import type { LogLevel } from '../util/log.ts';
import { FORMS, type Form } from './status/forms.ts';
import { VERSION } from './version.ts';

export interface ConnectionFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  /** Port of the API servers on every controller; the kubeconfig's where absent. */
  readonly apiPort?: number;
}

export interface ControllerFlags extends ConnectionFlags {
  /** Milliseconds. */
  readonly leaseDuration: number;
  /** Milliseconds; Infinity waits for ever. */
  readonly targetDeadline: number;
  /** `host:port`; nothing is served where absent. */
  readonly healthAddress?: string;
  readonly logLevel: LogLevel;
}

export interface ExtensionFlags extends ControllerFlags {
  /** Of the cluster that has the Machines; the other one's where absent. */
  readonly managementKubeconfig?: string;
  /** `host:port`. */
  readonly address: string;
  readonly certDir: string;
  readonly clientCa?: string;
  readonly payloadUrl: string;
  readonly checksumUrl?: string;
  /** Milliseconds. */
  readonly callTimeout: number;
}

export interface StatusFlags extends ConnectionFlags {
  readonly output: Form;
  readonly watch?: boolean;
}

export interface PreviewFlags extends ConnectionFlags {
  readonly file?: string;
  readonly downloads: boolean;
  readonly output: 'text' | 'json';
}

export interface ControlFlags extends ConnectionFlags {
  /** As `choosePlan` takes it; the only one that it can mean where absent. */
  readonly plan?: string;
}

export interface AbortFlags extends ControlFlags {
  /** Who did it where absent. */
  readonly reason?: string;
}

export interface KubeadmFlags extends ConnectionFlags {
  readonly manifest: string;
}

export interface KubeadmApplyFlags extends KubeadmFlags {
  readonly yes?: boolean;
  /** Milliseconds. */
  readonly leaseDuration: number;
}

/** What the commands do; each resolves with an exit code. */
export interface Actions {
  controller(flags: ControllerFlags): Promise<number>;
  capiExtension(flags: ExtensionFlags): Promise<number>;
  status(flags: StatusFlags): Promise<number>;
  why(node: string | undefined, flags: ConnectionFlags): Promise<number>;
  preview(flags: PreviewFlags): Promise<number>;
  pause(flags: ControlFlags): Promise<number>;
  resume(flags: ControlFlags): Promise<number>;
  abort(flags: AbortFlags): Promise<number>;
  retry(node: string, flags: ControlFlags): Promise<number>;
  validate(file: string): Promise<number>;
  kubeadmPlan(flags: KubeadmFlags): Promise<number>;
  kubeadmApply(flags: KubeadmApplyFlags): Promise<number>;
  write(text: string): void;
}

/** Runs one command line (without `node` and the script); resolves with the exit code, rejects with REFIT_USAGE. */
export async function runProgram(args: readonly string[], actions: Actions): Promise<number> {
  let exitCode = 0;
  const program = createProgram(actions, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    return usage(error);
  }
}

function createProgram(actions: Actions, end: (code: number) => void): Command {
  const program = new Command('refit')
    .description('Upgrades the nodes of a running Kubernetes cluster in place.')
    .exitOverride()
    .configureOutput({ writeOut: (text) => actions.write(text), outputError: () => undefined })
    .addHelpText('after', '\nExit codes: 0 done, 1 failed, 2 usage, 3 unreachable, 4 denied, 130 interrupted.');
  leading(program.command('controller').description('Carries plans out; run two or more, one of them leads.')).action(
    async (flags: ControllerFlags) => end(await actions.controller(flags)),
  );
  leading(
    hookOptions(program.command('capi-extension').description('Updates Machines of Cluster API in place.')),
  ).action(async (flags: ExtensionFlags) => end(await actions.capiExtension(flags)));
  program.command('agent').description('Upgrades the node it runs on; see refit agent --help.');
  connected(
    program.command('status').description('Shows what runs where, since when, what it waits for and what comes next.'),
  )
    .option('-w, --watch', 'tell every change until all plans have ended: 0 all done, 1 not')
    .addOption(new Option('-o, --output <form>', 'form of the output').choices(FORMS).default('text'))
    .action(async (flags: StatusFlags) => end(await actions.status(flags)));
  addExplanations(program, actions, end);
  addControls(program, actions, end);
  program
    .command('validate')
    .description('Says of a plan file whether it can be carried out as written; asks no cluster.')
    .argument('<file>', 'file with one Plan')
    .action(async (file: string) => end(await actions.validate(file)));
  addKubeadm(program, actions, end);
  program
    .command('version')
    .description('Prints the version of Refit.')
    .action(() => actions.write(`refit ${VERSION}\n`));
  return program;
}

function addExplanations(program: Command, actions: Actions, end: (code: number) => void): void {
  connected(program.command('why').description('Says why a plan or a node waits or failed, and what ends that.'))
    .argument('[node]', 'tell of this node only')
    .action(async (node: string | undefined, flags: ConnectionFlags) => end(await actions.why(node, flags)));
  connected(
    program.command('preview').description('Shows who would move when, and what the gates say; writes nothing.'),
  )
    .option('-f, --file <file>', 'file with one Plan; default: the plans of the cluster that are not over')
    .addOption(new Option('-o, --output <form>', 'form of the output').choices(['text', 'json']).default('text'))
    .option('--no-downloads', 'ask no server for the downloads; default: each is asked whether it has them')
    .addHelpText('after', '\nA manifest of kubeadm is shown by `refit kubeadm plan`; of Cluster API there is no file.')
    .action(async (flags: PreviewFlags) => end(await actions.preview(flags)));
}

function addControls(program: Command, actions: Actions, end: (code: number) => void): void {
  const order = (name: string, description: string): Command =>
    connected(program.command(name).description(description)).option(
      '--plan <kind/name>',
      'the plan; default: the only one that is not over, else the last one',
    );
  order('pause', 'Lets nothing new start; what is under way finishes.').action(async (flags: ControlFlags) =>
    end(await actions.pause(flags)),
  );
  order('resume', 'Lets a paused plan go on.').action(async (flags: ControlFlags) => end(await actions.resume(flags)));
  order('abort', 'Ends a plan: takes back what is not begun on its node, and lets the rest finish.')
    .option('--reason <text>', 'why, for whoever looks at the plan; default: who did it')
    .action(async (flags: AbortFlags) => end(await actions.abort(flags)));
  order('retry', 'Lets a node that failed go again, and its plan with it.')
    .argument('<node>', 'name of the node')
    .action(async (node: string, flags: ControlFlags) => end(await actions.retry(node, flags)));
}

function hookOptions(command: Command): Command {
  return command
    .requiredOption('--payload-url <template>', 'where a version is, with {version}, {os} and {arch} in it')
    .option('--checksum-url <template>', 'where the SHA-256 of that is, in the same form; default: none is checked')
    .option('--address <host:port>', 'serve the hooks there', '127.0.0.1:9443')
    .option(
      '--cert-dir <directory>',
      'tls.crt and tls.key, read again when changed',
      '/tmp/k8s-webhook-server/serving-certs',
    )
    .option('--client-ca <file>', 'authority of whoever may call; default: nobody is asked for a certificate')
    .addOption(
      new Option('--call-timeout <time>', 'how long a call may take where its caller grants no less')
        .argParser(parseTime)
        .default(10_000, '10s'),
    )
    .option(
      '--management-kubeconfig <file>',
      'kubeconfig of the cluster with the Machines; default: that of the Nodes',
    );
}

/** What every process takes that stands for election. */
function leading(command: Command): Command {
  return connected(command)
    .addOption(
      new Option('--lease-duration <time>', 'how long a silent leader keeps the lease, in whole seconds')
        .argParser(parseLease)
        .default(15_000, '15s'),
    )
    .addOption(
      new Option('--target-deadline <time>', 'how long a node may take from its signal on; 0 waits for ever')
        .argParser(parseDeadline)
        .default(DEFAULT_POLICY.targetDeadlineMs, formatDuration(DEFAULT_POLICY.targetDeadlineMs)),
    )
    .option('--health-address <host:port>', 'serve /healthz, /readyz and /metrics there')
    .addOption(
      new Option('--log-level <level>', 'least level to log')
        .choices(['debug', 'info', 'warn', 'error'])
        .default('info'),
    );
}

function addKubeadm(program: Command, actions: Actions, end: (code: number) => void): void {
  const kubeadm = program.command('kubeadm').description('Upgrades a kubeadm cluster over SSH, as its manifest says.');
  const withManifest = (name: string): Command =>
    connected(kubeadm.command(name)).addOption(
      new Option('-m, --manifest <file>', 'hosts, how to reach them, and the version they shall have').default(
        'cluster.yaml',
      ),
    );
  withManifest('plan')
    .description('Shows what apply would do, and every rule that stands against it; changes nothing.')
    .action(async (flags: KubeadmFlags) => end(await actions.kubeadmPlan(flags)));
  withManifest('apply')
    .description('Shows the plan, asks, and carries it out; run again, it goes on where it was left.')
    .option('-y, --yes', 'agree beforehand')
    .addOption(leaseDuration('how long a run that was killed keeps the lock, in whole seconds'))
    .action(async (flags: KubeadmApplyFlags) => end(await actions.kubeadmApply(flags)));
}

function leaseDuration(description: string): Option {
  return new Option('--lease-duration <time>', description).argParser(parseLease).default(15_000, '15s');
}

function connected(command: Command): Command {
  return command
    .option('--kubeconfig <file>', "kubeconfig to use; default: KUBECONFIG, the pod's service account, ~/.kube/config")
    .option('--context <name>', 'context of the kubeconfig; default: its current context')
    .option(
      '--api-port <port>',
      'port of the API server on every controller; default: that of the server in the kubeconfig',
      parsePort,
    );
}

/** Asking for help ends well; every other complaint of the parser is the user's to mend. */
function usage(error: unknown): number {
  if (!(error instanceof CommanderError)) throw error;
  if (error.exitCode === 0) return 0;
  throw new RefitError('REFIT_USAGE', error.message.replace(/^error: /, ''), { cause: error });
}

function parsePort(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port > 0 && port < 65_536) return port;
  throw new InvalidArgumentError('a port is a number from 1 to 65535');
}

function parseTime(text: string): number {
  const milliseconds = parseDuration(text);
  if (milliseconds !== undefined) return milliseconds;
  throw new InvalidArgumentError('a time is a number with ms, s, m or h, such as 90s');
}

/** A Lease counts in whole seconds. */
function parseLease(text: string): number {
  const milliseconds = parseTime(text);
  if (milliseconds % 1000 === 0) return milliseconds;
  throw new InvalidArgumentError('a lease lasts whole seconds');
}

function parseDeadline(text: string): number {
  return text === '0' ? Number.POSITIVE_INFINITY : parseTime(text);
}
