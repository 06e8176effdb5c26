/** Owns the evaluation of a list of gates: the first that does not pass speaks for all. */
import type { Gate, GateInput, Verdict } from './types.ts';

/** `ofRollout`: the gate says the same of every target. */
export type Refusal = Exclude<Verdict, { kind: 'pass' }> & { readonly gate: string; readonly ofRollout: boolean };

interface Passed {
  readonly kind: 'pass';
  readonly ofRollout?: undefined;
}

export function evaluate(gates: readonly Gate[], input: GateInput): Passed | Refusal {
  for (const gate of gates) {
    const verdict = gate.evaluate(input);
    if (verdict.kind !== 'pass') return { ...verdict, gate: gate.name, ofRollout: gate.ofRollout === true };
  }
  return { kind: 'pass' };
}
