/**
 * Builds the object for a report: the last known object with a new status in its signal, and with the annotation of the
 * report.
 */
import { withCordon } from '../../drain/cordon-marks.ts';
import { annotated, type KubeObject, kubeletVersionOf, nodes } from '../../kube/resources.ts';
import type { AgentReport, SignalData } from '../../signal/annotations.ts';
import * as signals from '../../signal/annotations.ts';
import { rfc3339 } from '../../util/clock.ts';
import { defined } from '../../util/json.ts';
import type { Journal } from '../journal.ts';
import type { Step } from '../steps/step.ts';

type ReportStep = Extract<Step, { kind: 'report' }>;

/**
 * Returns the object with the step's status and report. At the status Cordoning it may also cordon
 * the node. `journal` is the journal after the step; `now` is in milliseconds since the Unix epoch.
 */
export function withReport(
  object: KubeObject,
  signal: SignalData,
  step: ReportStep,
  journal: Journal,
  now: number,
) {
  const { annotations } = object.metadata;
  const status = { status: step.status, timestamp: rfc3339(now) };
  const earlier = signals.decodeReport(annotations, signal.created) ?? { created: signal.created };
  const from =
    signal.command.kind === 'kubeadmupdate'
      ? (earlier.from ?? kubeletVersionOf(object))
      : step.from;
  const report = reportOf({ ...step, ...defined({ from }) }, journal, earlier);
  const answered = signals.encodeSignal({ ...signal, status });
  const reported = annotated(object, { ...answered, ...signals.encodeReport(report) });
  // If the policy names an owner, the agent cordons the node for the leader. So one write reports Cordoning and cordons
  // the node.
  const { cordonFor } = signals.agentPolicyFor(annotations, signal.created);
  const cordons =
    step.status === 'Cordoning' && object.kind === nodes.kind && cordonFor !== undefined;
  return cordons ? withCordon(reported, cordonFor) : reported;
}

/**
 * Returns the report. It keeps the values that were reported earlier for this signal, because the journal may have been
 * lost.
 */
function reportOf(
  step: ReportStep,
  journal: Journal,
  { reason: _past, ...earlier }: AgentReport,
): AgentReport {
  const { kind: _kind, status: _status, ...told } = step;
  const from = journal.phase !== 'idle' && 'from' in journal.work ? journal.work.from : step.from;
  const spent = { ...earlier.spent, ...(journal.phase === 'idle' ? {} : journal.spent) };
  const known = {
    from,
    spent: Object.keys(spent).length === 0 ? undefined : spent,
    removed: journal.phase === 'idle' ? undefined : journal.removed,
    removedBundle: journal.phase === 'idle' ? undefined : journal.removedBundle,
    etcdSnapshot: 'snapshot' in journal ? journal.snapshot : undefined,
    upMs: 'upMs' in journal ? journal.upMs : undefined,
  };
  return { ...earlier, ...told, ...defined(known) };
}
