/** Lists the commands that change how plans are carried out: upgrade, pause, resume, abort, rollback, retry, start, hold, unhold, approve and accept. */

import { Argument, InvalidArgumentError, Option } from 'commander';
import { DIALECT_NAMES } from '../api/refit/upgrade-policy.ts';
import type { ControlFlags } from '../cli/controls/control-command.ts';
import { openingLength } from '../cli/controls/opening-length.ts';
import type { RollBackFlags } from '../cli/controls/roll-back.ts';
import * as common from '../cli/options.ts';
import { RefitError } from '../util/errors.ts';
import { type DialectCall, type DialectSpec, partsOf } from './dialect-call.ts';
import { objectCommands } from './object-commands.ts';
import { planArgument, planOf } from './plan-argument.ts';

const REASON = new Option(
  '--reason <text>',
  'reason that Refit shows with the plan; default: none',
);

const PLAN_OPTION = new Option(
  '--plan <kind/name>',
  'the plan to change; default: the only one that has not ended, else the last one',
);

const PLAN_ARGUMENT = planArgument('the plan to change');

export const CONTROL_COMMANDS: readonly DialectSpec[] = [
  {
    name: 'upgrade',
    summary:
      'Gives the cluster another version: shows what that would do, asks, and writes the plan.',
    argument: new Argument('<version>', 'the new version, such as v1.37.2+k0s.0'),
    options: [
      ...common.CONNECTION_OPTIONS,
      new Option(
        '--dialect <name>',
        'the dialect that is meant, if several could give the version',
      ).choices(DIALECT_NAMES),
      new Option(
        '--plan <kind/name>',
        'the only plan to write; default: all that install the version',
      ),
      new Option(
        '--from <address>',
        'for k0s: where its files are, as a folder, as an address with {version}, {os} and {arch}, or as the index.yaml of a channel; default: as in the last Plan, else the releases of k0s',
      ),
      new Option(
        '-m, --manifest <file>',
        'write the version into this manifest of a kubeadm cluster instead',
      ),
      new Option('--cluster <name>', 'the Cluster of Cluster API, in its management cluster'),
      new Option('-n, --namespace <name>', 'namespace of that Cluster; default: default'),
      common.NO_READY,
      common.ACCEPT_CHECK,
      common.DRY_RUN,
      new Option('-y, --yes', 'do not ask'),
      new Option(
        '-o, --output <form>',
        'yaml: print what would be written, and write nothing',
      ).choices(['yaml']),
    ],
    run: async (flags, call) =>
      await (await import('../cli/upgrade/upgrade-command.ts')).upgrade(
        call.argument ?? '',
        flags,
        {
          ...partsOf(call),
          modules: call.modules,
          environment: process.env,
        },
      ),
  },
  {
    name: 'pause',
    summary: 'Pauses a plan: no new node starts; nodes in progress finish.',
    argument: PLAN_ARGUMENT,
    options: [...common.CONNECTION_OPTIONS, PLAN_OPTION, REASON, common.DRY_RUN],
    run: async (flags: ControlFlags & { reason?: string }, call) => {
      const { pauseBecause } = await import('../cli/controls/pause-abort.ts');
      const { applyControl } = await import('../cli/controls/control-command.ts');
      await applyControl(
        pauseBecause(flags.reason),
        { ...flags, ...planOf(flags, call) },
        partsOf(call),
      );
    },
  },
  {
    name: 'resume',
    summary: 'Resumes a paused plan.',
    argument: PLAN_ARGUMENT,
    options: [...common.CONNECTION_OPTIONS, PLAN_OPTION, common.DRY_RUN],
    run: async (flags: ControlFlags, call) => {
      const { resume } = await import('../cli/controls/pause-abort.ts');
      const { applyControl } = await import('../cli/controls/control-command.ts');
      await applyControl(resume, { ...flags, ...planOf(flags, call) }, partsOf(call));
    },
  },
  {
    name: 'abort',
    summary:
      'Ends a plan. Refit cancels the upgrade of each node whose service has not changed yet. The other nodes finish.',
    argument: PLAN_ARGUMENT,
    options: [
      ...common.CONNECTION_OPTIONS,
      PLAN_OPTION,
      new Option(
        '--reason <text>',
        'reason that Refit shows with the plan; default: who ran this command',
      ),
      common.DRY_RUN,
    ],
    run: async (flags: ControlFlags & { reason?: string }, call) =>
      await (await import('../cli/controls/pause-abort.ts')).carryOutAbort(
        { ...flags, ...planOf(flags, call) },
        partsOf(call),
      ),
  },
  {
    name: 'rollback',
    summary:
      'Takes the nodes of an ended or aborted plan (a Plan of k0s or Rancher) back to the versions that they ran before the plan. For Machines ' +
      'of Cluster API, it shows how to change the owner of the Machines, and writes nothing.',
    argument: new Argument(
      '[plan]',
      'the plan to roll back, as with --plan; or machine/NAME, machinedeployment/NAME, or a control plane such as kubeadmcontrolplane/NAME',
    ),
    options: [
      ...common.CONNECTION_OPTIONS,
      PLAN_OPTION,
      new Option(
        '--run <id>',
        'the run to roll back, as refit history or refit why names it; default: the last one of the plan',
      ),
      new Option(
        '--url <platform=url>',
        'download of the old version, such as linux-amd64=https://…; default: as an earlier run recorded it',
      ).argParser(common.addValue),
      new Option(
        '--sha256 <platform=hex>',
        'with --url: the SHA-256 of that file; may be repeated',
      ).argParser(common.addValue),
      new Option(
        '--image <image>',
        'Plans of Rancher: an image that installs an older version; default: that of the Plan',
      ),
      new Option(
        '--skip-node <name>',
        'Plans of k0s: a node that stays as it is, such as one that cannot go back; may be repeated',
      ).argParser(common.addValue),
      new Option('--reason <text>', 'reason that Refit records in the Plan; required for Plans'),
      new Option(
        '-n, --namespace <name>',
        'namespace of the Machine or its owner; default: default',
      ),
      common.outputForm('text', 'yaml'),
      new Option('-y, --yes', 'do not ask'),
      common.DRY_RUN,
    ],
    run: async (flags: RollBackFlags & { namespace?: string }, call) =>
      await (await import('./roll-back.ts')).rollBack(
        { ...flags, ...planOf(flags, call) },
        partsOf(call),
        call.modules,
      ),
  },
  {
    name: 'retry',
    summary: 'Tries a failed node or the failed hooks of a plan again, and continues the plan.',
    argument: new Argument(
      '[node]',
      'name of the node, of its Machine, or of a plan whose hook failed; with --skipped: the plan',
    ),
    options: [
      ...common.CONNECTION_OPTIONS,
      PLAN_OPTION,
      new Option('--skipped', 'try all nodes again that the plan has left out'),
      common.DRY_RUN,
    ],
    run: async (flags, call) => await retry(flags, call),
  },
  {
    name: 'start',
    summary: 'Opens the maintenance window of a plan once. The opening ends by itself.',
    argument: PLAN_ARGUMENT,
    options: [
      ...common.CONNECTION_OPTIONS,
      PLAN_OPTION,
      new Option('--now', 'open the window now').makeOptionMandatory(),
      new Option('--for <time>', 'how long it is open, such as 2h; at most 7 days: 168h')
        .argParser(parseOpening)
        .makeOptionMandatory(),
      REASON,
      new Option('--blackouts', 'let nodes start during a blackout, too'),
      common.DRY_RUN,
    ],
    run: async (flags: ControlFlags & { for: number }, call) =>
      await (await import('../cli/controls/start.ts')).start(
        { ...flags, ...planOf(flags, call) },
        partsOf(call),
      ),
  },
  {
    name: 'hold',
    summary: 'Holds a node: no plan starts on it; the plans go on with the other nodes.',
    argument: new Argument('<node>', 'name of the Node or ControlNode, or machine/NAME'),
    options: [
      ...common.CLUSTER_OPTIONS,
      new Option('--reason <text>', 'reason that Refit shows with the node; default: none'),
      new Option(
        '--until <time>',
        'when the hold ends, in RFC 3339; default: the node is held until refit unhold',
      ),
      new Option('--for <time>', 'how long it is held, instead of --until')
        .argParser(common.parseTime)
        .conflicts('until'),
      common.DRY_RUN,
    ],
    run: async (flags, { argument = '', ...call }) =>
      await (await import('../cli/controls/hold.ts')).hold(argument, flags, partsOf(call)),
  },
  {
    name: 'unhold',
    summary: 'Ends the hold of a node.',
    argument: new Argument('<node>', 'name of the Node or ControlNode, or machine/NAME'),
    options: [...common.CLUSTER_OPTIONS, common.DRY_RUN],
    run: async (flags, { argument = '', ...call }) =>
      await (await import('../cli/controls/hold.ts')).unhold(argument, flags, partsOf(call)),
  },
  {
    name: 'approve',
    summary:
      'With --wave: lets a wave of a plan start, if its policy requires approval. Otherwise: lets Cluster API replace a Machine or the ' +
      'Machines of a MachineSet, if an UpdaterSet requires approval.',
    argument: new Argument(
      '[object]',
      'with --wave: the plan, as with --plan; otherwise machine/NAME or machineset/NAME',
    ),
    options: [
      ...common.CONNECTION_OPTIONS,
      PLAN_OPTION,
      new Option('--wave <number>', 'the wave to approve; the first wave is 1').argParser(
        parseWave,
      ),
      REASON,
      new Option(
        '-n, --namespace <name>',
        'namespace of the Machine or MachineSet; default: default',
      ),
      common.DRY_RUN,
    ],
    run: async (flags, call) => await approve(flags, call),
  },
  {
    name: 'accept',
    summary: 'Lets a plan go on although a health check of its policy fails, until its run ends.',
    argument: PLAN_ARGUMENT,
    options: [
      ...common.CONNECTION_OPTIONS,
      PLAN_OPTION,
      new Option(
        '--check <name>',
        'the health check, as the policy names it',
      ).makeOptionMandatory(),
      REASON,
      common.DRY_RUN,
    ],
    run: async (flags: ControlFlags & { check: string }, call) =>
      await (await import('../cli/controls/approve.ts')).accept(
        { ...flags, ...planOf(flags, call) },
        partsOf(call),
      ),
  },
];

async function approve(
  flags: ControlFlags & {
    readonly wave?: number;
    readonly namespace?: string;
    readonly reason?: string;
  },
  call: DialectCall,
): Promise<void> {
  const { wave, namespace, ...rest } = flags;
  const parts = partsOf(call);
  if (wave !== undefined) {
    if (namespace !== undefined)
      throw new RefitError(
        'REFIT_USAGE',
        '--namespace is only for Machines; write the namespace before the name of the plan, as NAMESPACE/NAME',
      );
    const chosen = planOf(flags, call);
    // The user may also name the plan as plan/<dialect>/<namespace>/<name>.
    const plan = chosen.plan?.replace(/^plan\/(?=[^/]+\/)/i, '');
    const { approveWave } = await import('../cli/controls/approve.ts');
    return await approveWave({ ...rest, wave, ...(plan === undefined ? {} : { plan }) }, parts);
  }
  const { argument: object } = call;
  if (object === undefined || flags.plan !== undefined)
    throw new RefitError(
      'REFIT_USAGE',
      'name a plan and its wave (--wave), or an object: machine/NAME or machineset/NAME',
    );
  if (flags.reason !== undefined)
    throw new RefitError('REFIT_USAGE', '--reason is for the approval of a wave: add --wave');
  const commands = await objectCommands(call.modules);
  await commands.approve(object, { ...rest, namespace: namespace ?? 'default' }, parts);
}

async function retry(
  flags: ControlFlags & { readonly skipped?: boolean },
  call: DialectCall,
): Promise<void> {
  const parts = partsOf(call);
  if (flags.skipped === true) {
    const { applyControl } = await import('../cli/controls/control-command.ts');
    const { retrySkipped } = await import('../cli/controls/retry-skipped.ts');
    return await applyControl(retrySkipped, { ...flags, ...planOf(flags, call) }, parts);
  }
  const { argument: node } = call;
  if (node === undefined)
    throw new RefitError(
      'REFIT_USAGE',
      'name the node to retry, or a plan whose hook failed: refit retry PLAN; or use --skipped',
    );
  await (await import('../cli/controls/retry-node.ts')).retryNode(node, flags, parts);
}

function parseWave(text: string): number {
  const wave = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(wave) && wave >= 1) return wave;
  throw new InvalidArgumentError('write the number of a wave; the first wave is 1');
}

function parseOpening(text: string): number {
  const milliseconds = openingLength(text);
  if (milliseconds !== undefined) return milliseconds;
  throw new InvalidArgumentError(
    'Write hours or minutes, such as 2h or 90m, and at most 168h (7 days).',
  );
}
