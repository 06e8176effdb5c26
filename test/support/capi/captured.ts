/** Recorded requests of real managers, with the answers of a reference extension. */
import { readFileSync } from 'node:fs';
import type { Patches } from '../../../src/api/capi/hooks.ts';
import type { CanRequest } from '../../../src/dialects/capi/hooks/can-update.ts';

export interface Captured {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly request: CanRequest & { readonly kind: string };
  readonly exampleResponse: Patches & { readonly status: 'Success' };
}

export function captured(name: string): Captured {
  const file = new URL(`../../fixtures/capi/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as Captured;
}
