/** Owns the evaluation of a list of gates: the first that does not pass speaks for all. */
import type { Gate, GateInput, Verdict } from './types.ts';

export type Refusal = Exclude<Verdict, { kind: 'pass' }> & { readonly gate: string };

export function evaluate(gates: readonly Gate[], input: GateInput): { readonly kind: 'pass' } | Refusal {
  for (const gate of gates) {
    const verdict = gate.evaluate(input);
    if (verdict.kind !== 'pass') return { ...verdict, gate: gate.name };
  }
  return { kind: 'pass' };
}
