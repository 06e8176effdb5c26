/** Writes a reason as text into a Plan's status, and reads the same code back. */

import { because, REASONS, type Reason, type ReasonCode } from '../../engine/model/reasons.ts';
import type { RolloutPhase } from '../../engine/model/recorded.ts';

/** The usual reason of each phase: its code is left out of the text. */
const IMPLIED: Readonly<Partial<Record<RolloutPhase, ReasonCode>>> = {
  running: 'TargetFailed',
  failed: 'TargetFailed',
  incomplete: 'TargetMissing',
  invalid: 'InvalidPlan',
};

/** The original's own sentence, which scripts compare: it must stay without a code. */
const REMOVED = /^\S+ \S+ has been removed in Kubernetes /;

export function textOf({ code, message }: Reason, phase: RolloutPhase): string {
  return code === IMPLIED[phase] || REMOVED.test(message) ? message : `${code}: ${message}`;
}

/** A text of another leader has no code. */
export function reasonOf(text: string, phase: RolloutPhase): Reason {
  if (REMOVED.test(text)) return because('RemovedApis', text);
  const [, code = '', message = ''] = /^(\w+): (.*)$/s.exec(text) ?? [];
  return isReasonCode(code) ? because(code, message) : because(IMPLIED[phase] ?? 'TargetFailed', text);
}

function isReasonCode(text: string): text is ReasonCode {
  return Object.hasOwn(REASONS, text);
}
