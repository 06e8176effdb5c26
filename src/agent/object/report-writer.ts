/** Builds the object to write: the last known one, with a new status in its signal and a report beside it. */
import { withCordon } from '../../drain/cordon-marks.ts';
import { annotated, type KubeObject, kubeletVersionOf, nodes } from '../../kube/resources.ts';
import type { AgentReport, SignalData } from '../../signal/annotations.ts';
import * as signals from '../../signal/annotations.ts';
import { rfc3339 } from '../../util/clock.ts';
import { defined } from '../../util/json.ts';
import type { Journal } from '../journal.ts';
import type { Step } from '../steps/step.ts';

type ReportStep = Extract<Step, { kind: 'report' }>;

/** Leaves the rest as it is; at Cordoning it may cordon. `journal` is the one after the step; `now` is wall-clock milliseconds. */
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
  // Cordons in the leader's name if the policy asks for it: one write then reports Cordoning and cordons the node.
  const { cordonFor } = signals.agentPolicyFor(annotations, signal.created);
  const cordons =
    step.status === 'Cordoning' && object.kind === nodes.kind && cordonFor !== undefined;
  return cordons ? withCordon(reported, cordonFor) : reported;
}

/** Keeps what was reported for this signal before, so that nothing is lost with a journal. */
function reportOf(
  step: ReportStep,
  journal: Journal,
  { reason: _past, ...earlier }: AgentReport,
): AgentReport {
  const { kind: _kind, status: _status, ...told } = step;
  const from = journal.phase !== 'idle' && 'from' in journal.work ? journal.work.from : step.from;
  const spent = { ...earlier.spent, ...(journal.phase === 'idle' ? {} : journal.spent) };
  const known = { from, spent: Object.keys(spent).length === 0 ? undefined : spent };
  return { ...earlier, ...told, ...defined(known) };
}
