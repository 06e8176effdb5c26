/** What a host does during an upgrade over SSH: the steps of its procedure, and scripts whose process was killed. */
import type { Part } from '../../../src/dialects/kubeadm/host/host.ts';
import { PARTS, STEPS } from '../../../src/dialects/kubeadm/host/step-names.ts';
import { foundOn } from '../../../src/dialects/kubeadm/plan/host-report.ts';
import {
  type Report,
  reportOn,
  reportPatch,
} from '../../../src/dialects/kubeadm/plan/kubeadm-signal.ts';
import { requestOf } from '../../../src/dialects/kubeadm/plan/plan-object.ts';
import { annotated, type Node } from '../../../src/kube/resources.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { withKubelet } from '../../support/builders/nodes.ts';
import { pastOf } from '../object-states.ts';
import type { KubeadmChange, KubeadmScene } from './kubeadm-moves.ts';
import { isController, minorOf, otherVersion } from './kubeadm-objects.ts';
import { type Doing, entryOf, type HostPast, type Procedure } from './kubeadm-state.ts';

interface Step {
  readonly label: string;
  readonly doing: Doing;
  /** What the procedure writes to the Node, if it writes anything. */
  readonly report?: Partial<Report> & Pick<Report, 'step'>;
  readonly past?: Partial<HostPast>;
  /** The version that the kubelet reports afterwards. */
  readonly kubelet?: string;
}

/** Returns what the procedure with this key may do next. */
export function stepsOf(scene: KubeadmScene, key: string): KubeadmChange[] {
  const { state, configuration, objects } = scene;
  const procedure = state.procedures[key];
  if (!procedure) return [];
  const { node: name } = procedure;
  const node: Node | undefined = objects.get(`nodes/${name}`);
  if (!node) throw new RangeError(`no Node ${name}`);
  const past = pastOf(state, name);
  const at = { key, procedure, past, node };
  const mayFail = configuration.hosts[name] === 'bad';
  const steps = [...ordinarySteps(at), ...(mayFail ? failures(at, configuration) : [])];
  return steps.map(({ label, doing, report, past: more, kubelet }): KubeadmChange => {
    const told = report ? withReport(node, reportFor(at, report, scene.now)) : node;
    const after = kubelet === undefined ? told : withKubelet(told, kubelet);
    return {
      label: `${name} ${label}`,
      fair: true,
      ...(after !== node && { objects: new Map([[`nodes/${name}`, after]]) }),
      state: { procedures: { ...state.procedures, [key]: { ...procedure, doing } } },
      ...(more && { past: { ...more, name } }),
    };
  });
}

interface At {
  readonly key: string;
  readonly procedure: Procedure;
  readonly past: HostPast;
  readonly node: Node;
}

/** A script waits for the lock of its host, so nothing happens while a script of a killed process runs. */
function ordinarySteps(at: At): readonly Step[] {
  const { key, procedure, past, node } = at;
  const { parts, rollout, doing } = procedure;
  const [first = 'kubeadm'] = parts;
  const drains = parts.includes('kubelet');
  const isLocked = past.detached !== '';
  switch (doing) {
    case 'begun':
      if (parts.includes('certificates')) return [{ label: 'goes on', doing: 'touching' }];
      return [{ label: 'begins to stage', doing: 'staging', report: { step: STEPS.stage } }];
    case 'staging':
      if (isLocked) return [];
      if (!drains) return [{ label: 'has staged', doing: 'touching' }];
      return [{ label: 'asks for its drain', doing: 'draining', report: { step: STEPS.drain } }];
    case 'drained':
      return [{ label: 'goes on', doing: 'touching' }];
    case 'touching': {
      const isReady = past.isEmpty && node.spec?.unschedulable === true;
      const label = `begins to replace ${first}`;
      const report = { step: PARTS[first], touched: true };
      return [
        {
          label,
          doing: first,
          report,
          past: drains ? { isHalfDone: true, ...(!isReady && { changedUndrained: true }) } : {},
        },
      ];
    }
    case 'verifying':
      return [{ label: 'is verified', doing: 'finishing' }];
    case 'finishing':
      return [
        {
          label: 'reports its end',
          doing: 'ended',
          report: { step: STEPS.verify, state: 'finished' },
          past: {
            isHalfDone: drains ? false : past.isHalfDone,
            finished: [...past.finished, `${rollout} ${key}`],
          },
        },
      ];
    case 'failing': {
      const { step = '' } = reportOn(node) ?? {};
      const report = { step, state: 'failed', message: 'it failed' } as const;
      return [{ label: 'reports its failure', doing: 'ended', report }];
    }
    case 'kubeadm':
    case 'kubelet':
    case 'certificates': {
      if (isLocked) return [];
      const next = parts[parts.indexOf(doing) + 1];
      const { past: after, kubelet } = replaced(past, doing, rollout, procedure.version);
      return [
        {
          label: `has replaced ${doing}`,
          doing: next ?? 'verifying',
          report: { step: next ? PARTS[next] : STEPS.verify },
          ...(after && { past: after }),
          ...(kubelet !== undefined && { kubelet }),
        },
      ];
    }
    case 'draining':
    case 'ended':
      return [];
  }
}

/** A bad host fails before it is changed, or its verification fails and everything on it is restored. */
function failures(
  { procedure, past }: At,
  configuration: KubeadmScene['configuration'],
): readonly Step[] {
  const { doing, version, parts, rollout } = procedure;
  if (past.detached !== '') return [];
  if (doing === 'staging') return [{ label: 'cannot stage', doing: 'failing' }];
  if (doing !== 'verifying') return [];
  const earlier = otherVersion(configuration, version);
  // Static pods never return to an earlier minor version.
  const keepsPods = isController(past.name) && minorOf(earlier) !== minorOf(version);
  const restored = parts.filter((part) => part === 'kubelet' || (part === 'kubeadm' && !keepsPods));
  const forgotten = restored.map((part) => entryOf(rollout, part));
  const restoring = {
    ...Object.fromEntries(restored.map((part) => [part, earlier])),
    journal: past.journal.filter((entry) => !forgotten.includes(entry)),
  };
  return [
    {
      label: 'is not verified and restores what it ran before',
      doing: 'failing',
      past: restoring,
      ...(parts.includes('kubelet') && { kubelet: earlier }),
    },
  ];
}

/** Returns what a script does to its host. It does nothing if the journal names it as done. */
function replaced(
  past: HostPast,
  part: Part,
  rollout: string,
  version: string,
): Pick<Step, 'past' | 'kubelet'> {
  const entry = entryOf(rollout, part);
  if (past.journal.includes(entry)) return {};
  const journal = [...past.journal, entry].toSorted();
  if (part === 'certificates') return { past: { journal, needsRenewal: false } };
  return part === 'kubeadm'
    ? { past: { journal, kubeadm: version } }
    : { past: { journal, kubelet: version }, kubelet: version };
}

/** Returns the ends of scripts whose process was killed. */
export function scriptChanges({ state, plan, objects }: KubeadmScene): KubeadmChange[] {
  return state.past.flatMap((past): KubeadmChange[] => {
    const { name, detached } = past;
    const [rollout = '', part] = detached.split(' ');
    const node: Node | undefined = objects.get(`nodes/${name}`);
    if (!part || !node) return [];
    const { version = '' } = requestOf(plan) ?? {};
    const { past: after, kubelet } = replaced(past, part as Part, rollout, version);
    return [
      {
        label: `the script of the killed process has replaced ${part} on ${name}`,
        fair: true,
        ...(kubelet !== undefined && {
          objects: new Map([[`nodes/${name}`, withKubelet(node, kubelet)]]),
        }),
        past: { ...after, name, detached: '' },
      },
    ];
  });
}

/** Returns the Node with the report. */
export function withReport(node: Node, report: Report): Node {
  const { metadata } = reportPatch(report) as {
    readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
  };
  return annotated(node, metadata.annotations);
}

/** Returns the report of the procedure. It keeps what an earlier attempt on the same target has found. */
export function reportFor(
  { key, procedure, node }: Pick<At, 'key' | 'procedure' | 'node'>,
  more: Partial<Report> & Pick<Report, 'step'>,
  now: number,
): Report {
  const { rollout, attempt } = procedure;
  const { from, ...found } = foundOn(node, { rollout, target: key });
  return {
    rollout,
    target: key,
    attempt,
    state: 'working',
    since: rfc3339(now),
    spent: {},
    ...(from !== undefined && { from }),
    ...(procedure.parts.includes('kubelet') && { upgradesKubelet: true }),
    ...found,
    ...more,
  };
}
