/** Owns the text in which a reason stands in a Plan's status, so that whoever reads it back gets the same code. */

import { because, REASONS, type Reason, type ReasonCode } from '../../engine/model/reasons.ts';
import type { RolloutPhase } from '../../engine/model/recorded.ts';

/** What a reason most likely is, by the phase that the state beside it tells: of these only the sentence is written. */
const IMPLIED: Readonly<Partial<Record<RolloutPhase, ReasonCode>>> = {
  running: 'TargetFailed',
  failed: 'TargetFailed',
  incomplete: 'TargetMissing',
  invalid: 'InvalidPlan',
};

/** The original's own sentence, which scripts compare: it needs no code to be known again. */
const REMOVED = /^\S+ \S+ has been removed in Kubernetes /;

export function textOf({ code, message }: Reason, phase: RolloutPhase): string {
  return code === IMPLIED[phase] || REMOVED.test(message) ? message : `${code}: ${message}`;
}

/** A text that another leader wrote is a sentence without code. */
export function reasonOf(text: string, phase: RolloutPhase): Reason {
  if (REMOVED.test(text)) return because('RemovedApis', text);
  const [, code = '', message = ''] = /^(\w+): (.*)$/s.exec(text) ?? [];
  return isReasonCode(code) ? because(code, message) : because(IMPLIED[phase] ?? 'TargetFailed', text);
}

function isReasonCode(text: string): text is ReasonCode {
  return Object.hasOwn(REASONS, text);
}
