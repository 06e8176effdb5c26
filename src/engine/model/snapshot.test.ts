/** Proves for the compiler that the absence of a fact is always written down, so that nobody forgets a field by mistake. */
import { expectTypeOf, test } from 'vitest';
import type { TargetFacts } from './facts.ts';
import type { Snapshot } from './snapshot.ts';

/** The names of the fields that an object of the type may leave out; `never` if it must name all its fields. */
type OptionalIn<T> = T extends unknown
  ? { [K in keyof T]-?: object extends Pick<T, K> ? K : never }[keyof T]
  : never;

type OptionalInParts<T> = { [K in keyof T]: OptionalIn<T[K]> }[keyof T];

test('the types of this test find a field that may be left out, also in one member of a union', () => {
  interface Odd {
    readonly needed: { readonly a: string; readonly b?: string };
    readonly either: { readonly c: string | undefined } | { readonly d?: string };
    readonly missing?: string;
  }
  expectTypeOf<OptionalIn<Odd>>().toEqualTypeOf<'missing'>();
  expectTypeOf<OptionalInParts<Required<Pick<Odd, 'needed' | 'either'>>>>().toEqualTypeOf<
    'b' | 'd'
  >();
});

test('the facts about a target name all their fields', () => {
  expectTypeOf<OptionalIn<TargetFacts>>().toEqualTypeOf<never>();
});

test('a snapshot and its parts name all their fields', () => {
  expectTypeOf<OptionalIn<Snapshot>>().toEqualTypeOf<never>();
  expectTypeOf<OptionalInParts<Omit<Snapshot, 'rollout'>>>().toEqualTypeOf<never>();
});
