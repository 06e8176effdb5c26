/** Lists the commands of `refit`. Adding one: a file in src/cli, an entry here, and a section in docs/reference/cli.md. */
import { Argument, InvalidArgumentError, Option } from 'commander';
import { completionOf, SHELLS, type Shell } from '../cli/completion.ts';
import type { Control } from '../cli/controls/control.ts';
import type { ControlFlags } from '../cli/controls/control-command.ts';
import * as common from '../cli/options.ts';
import { standardOutput } from '../cli/output.ts';
import type { CommandCall, CommandSpec } from '../cli/program.ts';
import type { SessionParts } from '../cli/status/status-session.ts';
import { VERSION } from '../cli/version.ts';
import { systemClock } from '../util/clock.ts';
import { INSTALL_COMMANDS } from './install-commands.ts';

const EXTENSION_OPTIONS: readonly Option[] = [
  ...common.PAYLOAD_OPTIONS,
  new Option('--address <host:port>', 'serve the hooks at this address').default('127.0.0.1:9443'),
  new Option(
    '--cert-dir <directory>',
    'directory of tls.crt and tls.key; read again when they change',
  ).default('/tmp/k8s-webhook-server/serving-certs'),
  new Option(
    '--client-ca <file>',
    'CA of the client certificates of Cluster API; nobody else may call',
  ),
  new Option(
    '--client-name <name>',
    'with --client-ca: only certificates with this subject CN or DNS name may call; may be given again',
  )
    .argParser(common.collected)
    .conflicts('insecureNoClientAuth'),
  new Option(
    '--insecure-no-client-auth',
    'instead of --client-ca: anybody who reaches the address may call',
  ),
  new Option(
    '--updater-certs <directory>',
    'a directory of tls.crt and tls.key for each clientCertificate of an UpdaterSet',
  ),
  new Option('--call-timeout <time>', 'time for a call, unless its caller allows more')
    .argParser(common.parseTime)
    .default(10_000, '10s'),
  new Option(
    '--delete-stuck-after <time>',
    'delete a worker Machine whose node says nothing this long after the deadline; default: none is deleted',
  ).argParser(common.parseTime),
  new Option(
    '--management-kubeconfig <file>',
    'kubeconfig of the cluster with the Machines; default: that of the cluster with the Nodes',
  ),
  new Option(
    '--workload-clusters [namespace]',
    "serve all Clusters, or those of one namespace, by their Secrets NAME-kubeconfig; --kubeconfig is then the Machines'",
  ).conflicts('managementKubeconfig'),
];

const KUBEADM_OPTIONS: readonly Option[] = [
  ...common.CONNECTION_OPTIONS,
  new Option('-m, --manifest <file>', 'hosts, how to reach them, and the wanted version').default(
    'cluster.yaml',
  ),
  new Option(
    '-o, --output <form>',
    'output format; json: one object at the end, progress on standard error',
  )
    .choices(['text', 'json'])
    .default('text'),
];

const KUBEADM_STAGES: readonly Option[] = [
  new Option('--skip-addons', 'leave the addons of the manifest as they are'),
  new Option('--force-conflicts', 'let addons take over fields that others manage'),
  new Option(
    '--upgrade-machine-deployments',
    'upgrade the MachineDeployments of machine-controller after all hosts',
  ),
];

/** Each command imports what it runs only when it runs. */
export const COMMANDS: readonly CommandSpec[] = [
  {
    name: 'controller',
    summary: 'Carries out Plans. Run two or more: one leads, the others stand by.',
    options: [
      ...common.CONTROLLER_OPTIONS,
      new Option(
        '--cluster-info <storage,network>',
        'tell update servers about the cluster, such as etcd,kuberouter',
      ).argParser((text) => {
        const [storage = '', network = '', ...more] = text.split(',');
        if (storage !== '' && network !== '' && more.length === 0) return { storage, network };
        throw new InvalidArgumentError('write storage and network, such as etcd,kuberouter');
      }),
      new Option(
        '--insecure-updates',
        'allow update servers with plain http, and downloads with neither https nor a sha256',
      ),
    ],
    run: async (flags, { abort }) =>
      await (await import('./controller.ts')).runController(flags, abort),
  },
  {
    name: 'capi-extension',
    summary: 'Upgrades Machines of Cluster API in place.',
    options: [...EXTENSION_OPTIONS, ...common.CONTROLLER_OPTIONS],
    run: async (flags, { abort }) =>
      await (await import('../dialects/capi/command/capi-extension.ts')).runCapiExtension(
        flags,
        abort,
      ),
  },
  {
    name: 'system-upgrade-controller',
    summary:
      "Carries out Rancher's Plans in place of that controller, configured by its environment variables.",
    run: async (_flags, { abort }) =>
      await (
        await import('../dialects/cattle/command/system-upgrade-controller.ts')
      ).runSystemUpgradeController(process.env, abort),
  },
  // Never gets here: refit.ts runs it without loading this list.
  { name: 'agent', summary: 'Upgrades the node it runs on; see refit agent --help.' },
  {
    name: 'status',
    summary: 'Shows the state of every plan: what runs, what waits and why, what comes next.',
    options: [
      ...common.CONNECTION_OPTIONS,
      ...common.FILTER_OPTIONS,
      new Option(
        '-w, --watch',
        'follow until all plans have ended: exit code 0 if all are done, else 1',
      ),
      common.outputForm('text', 'wide', 'json', 'yaml'),
    ],
    run: async (flags, call) =>
      await (await import('../cli/status/status-command.ts')).runStatus(flags, await partsOf(call)),
  },
  {
    name: 'why',
    summary: 'Explains why a plan or a node waits or failed, and what to do.',
    argument: new Argument('[node]', 'explain only this node, or that of this Machine'),
    options: [...common.CONNECTION_OPTIONS, ...common.FILTER_OPTIONS],
    run: async (flags, call) =>
      await (await import('../cli/why/why-command.ts')).showWhy(
        call.argument,
        flags,
        await partsOf(call),
      ),
  },
  {
    name: 'preview',
    summary:
      'Shows which nodes would be upgraded in which order, and what the gates say. Writes nothing.',
    options: [
      ...common.CONNECTION_OPTIONS,
      new Option(
        '-f, --file <file>',
        'file with Plans, a folder, or - for stdin; may be repeated; default: plans of the cluster that have not ended',
      ).argParser(common.addValue),
      new Option(
        '--cluster <name>',
        'instead: each Machine of this Cluster of Cluster API',
      ).conflicts('file'),
      new Option('--to <version>', 'with --cluster: if its version becomes this one'),
      new Option('-n, --namespace <name>', 'of that Cluster; default: default'),
      common.outputForm('text', 'json'),
    ],
    notes: 'For a kubeadm manifest use `refit kubeadm plan`.',
    run: async (flags, call) =>
      (flags['cluster'] ?? flags['to'] ?? flags['namespace']) === undefined
        ? await (await import('../cli/preview/preview-command.ts')).showPreview(
            flags,
            await partsOf(call),
          )
        : await (await import('../cli/preview/machines.ts')).previewMachines(
            flags,
            await partsOf(call),
          ),
  },
  control('pause', 'Pauses a plan: no new node starts, nodes in progress finish.', {
    load: async () => (await import('../cli/controls/pause-abort.ts')).pause,
  }),
  control('resume', 'Resumes a paused plan.', {
    load: async () => (await import('../cli/controls/pause-abort.ts')).resume,
  }),
  control(
    'abort',
    'Ends a plan: nodes whose service is untouched are released, the others finish.',
    {
      options: [
        new Option('--reason <text>', 'why, shown with the plan; default: who ran this command'),
      ],
      load: async ({ reason }) => (await import('../cli/controls/pause-abort.ts')).abort(reason),
    },
  ),
  control('retry', 'Tries a failed node again, and continues its plan.', {
    argument: new Argument('<node>', 'name of the node, or of its Machine'),
    load: async (flags, { argument = '', ...call }) => {
      const { retryMachine } = await import('../cli/controls/machines.ts');
      if (await retryMachine(argument, flags, await partsOf(call))) return undefined;
      return (await import('../cli/controls/retry.ts')).retry(argument);
    },
  }),
  {
    name: 'approve',
    summary:
      'Lets Cluster API replace a Machine, or those of a MachineSet, where an UpdaterSet asks.',
    argument: new Argument('<object>', 'machine/NAME or machineset/NAME'),
    options: [
      ...common.CLUSTER_OPTIONS,
      new Option('-n, --namespace <name>', 'its namespace').default('default'),
    ],
    run: async (flags, { argument = '', ...call }) =>
      await (await import('../cli/controls/machines.ts')).approve(
        argument,
        flags,
        await partsOf(call),
      ),
  },
  {
    name: 'updates',
    summary:
      'Shows the channels that the cluster follows: what runs, what is offered, and what comes next.',
    options: [...common.CONNECTION_OPTIONS, common.outputForm('text', 'json')],
    run: async (flags, call) =>
      await (await import('../cli/updates/updates-command.ts')).showUpdates(
        flags,
        await partsOf(call),
      ),
    commands: [
      {
        name: 'check',
        summary: 'Lets the leader ask the channel now, and shows what it found.',
        argument: new Argument('[name]', 'only this UpdateConfig'),
        options: [...common.CONNECTION_OPTIONS, common.outputForm('text', 'json')],
        run: async (flags, call) =>
          await (await import('../cli/updates/updates-command.ts')).checkUpdates(
            call.argument,
            flags,
            await partsOf(call),
          ),
      },
    ],
  },
  {
    name: 'serve',
    summary: 'Serves releases and channels to clusters: an update server.',
    argument: new Argument('<directory>', 'made by `refit bundle`'),
    options: [
      new Option('--address <host:port>', 'serve at this address').default('127.0.0.1:8080'),
      new Option(
        '--url <url>',
        'address of the files in indexes; default: as each client asks',
      ).argParser(
        common.matching(
          /^https?:\/\/[^\s/]\S*$/i,
          'write a URL, such as https://updates.example.com',
        ),
      ),
      new Option(
        '--host <name>',
        'without --url: answer clients that ask by this name, too; may be given again',
      ).argParser(common.collected),
      new Option('--cert-dir <directory>', 'directory of tls.crt and tls.key; default: plain http'),
      new Option(
        '--token-file <file>',
        'tokens for the channels, one a line; default: anybody may read them',
      ),
      common.HEALTH_ADDRESS,
      common.LOG_LEVEL,
    ],
    run: async (flags, { argument = '', abort }) =>
      await (await import('./update-server.ts')).runServe(argument, flags, abort),
  },
  {
    name: 'bundle',
    summary:
      'Makes the directory of an update server: gathers and verifies every file, then publishes all at once.',
    argument: new Argument('<directory>', 'for `refit serve`'),
    options: [
      new Option('-f, --file <file>', 'releases, where their files come from, and channels'),
      new Option('--unpack <archive>', 'first publish what this archive has'),
      new Option('--pack <archive>', 'then write all that is published into one archive'),
    ],
    run: async (flags, { argument = '', ...call }) =>
      await (await import('./update-server.ts')).runBundle(argument, flags, call),
  },
  {
    name: 'validate',
    summary:
      'Checks Plans, UpgradePolicies, UpdateConfigs or the hosts of kubeadm, without a cluster.',
    argument: new Argument('<file...>', 'files with them, folders of such files, or - for stdin'),
    run: async (_flags, { values = [], write }) =>
      await (await import('../cli/validate.ts')).validate(values, write),
  },
  {
    name: 'kubeadm',
    summary: 'Upgrades a kubeadm cluster over SSH, as its manifest says.',
    commands: [
      {
        name: 'plan',
        summary: 'Shows what apply would do, and every rule that forbids it. Changes nothing.',
        options: [...KUBEADM_OPTIONS, ...KUBEADM_STAGES],
        run: async (flags, { abort }) =>
          await (await import('../dialects/kubeadm/command/kubeadm-command.ts')).planKubeadm(
            flags,
            abort,
          ),
      },
      {
        name: 'restore-etcd',
        summary:
          'Replaces the data of etcd on all control-plane hosts by a snapshot. Asks in a terminal first.',
        options: [
          ...KUBEADM_OPTIONS,
          new Option(
            '--snapshot <path>',
            'the snapshot, at the same absolute path on every control-plane host',
          ).makeOptionMandatory(),
        ],
        run: async (flags, { abort }) =>
          await (await import('../dialects/kubeadm/command/restore-etcd.ts')).restoreEtcd(
            flags,
            abort,
          ),
      },
      {
        name: 'apply',
        summary:
          'Shows the plan, asks, and carries it out. Run it again to continue after an interruption.',
        options: [
          ...KUBEADM_OPTIONS,
          ...KUBEADM_STAGES,
          new Option('-y, --yes', 'do not ask'),
          new Option(
            '--digest <digest>',
            'refuse every plan but the one of this digest, which refit kubeadm plan shows',
          ),
          new Option(
            '--report <file>',
            'write what was done to this file: Markdown for *.md, otherwise JSON',
          ),
          common.leaseDuration('how long a run that was killed keeps the lock, in whole seconds'),
        ],
        run: async (flags, { abort }) =>
          await (await import('../dialects/kubeadm/command/kubeadm-command.ts')).applyKubeadm(
            flags,
            abort,
          ),
      },
    ],
  },
  ...INSTALL_COMMANDS,
  {
    name: 'migrate',
    summary: "Helps to move a k0s cluster from k0s's own autopilot to Refit. Changes nothing.",
    commands: [
      {
        name: 'k0s',
        summary:
          "Shows each node's k0s, its agent, and what to do next; exit code 1 if something is in the way.",
        options: [
          ...common.CLUSTER_OPTIONS,
          new Option('--check', 'show how far the cluster is; the default').conflicts('plan'),
          new Option('--plan', 'print all steps in order, with commands for these nodes'),
        ],
        run: async (flags, call) =>
          await (await import('../dialects/autopilot/command/migrate-command.ts')).migrateK0s(
            flags,
            await partsOf(call),
          ),
      },
    ],
  },
  {
    name: 'completion',
    summary: 'Prints a script by which your shell completes commands, options and values.',
    argument: new Argument('<shell>', 'which shell').choices(SHELLS),
    run: async (_flags, { argument, write }) =>
      await Promise.resolve(write(completionOf(argument as Shell, COMMANDS))),
  },
  {
    name: 'version',
    summary: 'Prints the version of Refit.',
    run: async (_flags, { write }) => await Promise.resolve(write(`refit ${VERSION}\n`)),
  },
];

/** What the commands for people share. The dialects load with them. */
async function partsOf({ abort, output = standardOutput }: CommandCall): Promise<SessionParts> {
  const { DIALECTS } = await import('../dialects/registry.ts');
  return { dialects: DIALECTS, clock: systemClock, output, abort };
}

interface ControlSpec extends Pick<CommandSpec, 'argument' | 'options'> {
  /** Only `abort` has a reason. Resolves with undefined once all is done. */
  readonly load: (
    flags: ControlFlags & { reason?: string },
    call: CommandCall,
  ) => Promise<Control | undefined>;
}

/** Returns a command that changes one plan. */
function control(
  name: string,
  summary: string,
  { options = [], load, ...rest }: ControlSpec,
): CommandSpec {
  const which = 'the plan; default: the only one that has not ended, else the last one';
  const plan = new Option('--plan <kind/name>', which);
  const run = async (flags: ControlFlags, call: CommandCall): Promise<void> => {
    const { applyControl } = await import('../cli/controls/control-command.ts');
    const change = await load(flags, call);
    if (change) await applyControl(change, flags, await partsOf(call));
  };
  return { name, summary, options: [...common.CONNECTION_OPTIONS, plan, ...options], run, ...rest };
}
