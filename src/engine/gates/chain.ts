/** Evaluates a list of gates: the first that does not pass decides. */
import type { Gate, GateInput, Verdict } from './types.ts';

export type Refusal = Exclude<Verdict, { kind: 'pass' }> &
  Pick<Gate, 'ofRollout' | 'probesEachTarget'> & { readonly gate: string };

interface Passed {
  readonly kind: 'pass';
  readonly ofRollout?: undefined;
}

export function evaluate(gates: readonly Gate[], input: GateInput): Passed | Refusal {
  for (const gate of gates) {
    const verdict = gate.evaluate(input);
    if (verdict.kind === 'pass') continue;
    const { name, ofRollout = false, probesEachTarget = false } = gate;
    return { ...verdict, gate: name, ofRollout, probesEachTarget };
  }
  return { kind: 'pass' };
}
