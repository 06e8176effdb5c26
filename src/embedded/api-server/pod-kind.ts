/** Owns the defaults and rules of pods: only what scheduling, draining and evicting need; containers are kept as given. */
import { builtinKind } from './builtin-kind.ts';
import * as shape from './builtin-shape.ts';
import type { ApiObject } from './store.ts';

export const podKind = builtinKind(
  { group: '', version: 'v1', plural: 'pods', namespaced: true, shape: shape.pod },
  { shortNames: ['po'], hasStatus: true, unconditionalUpdate: true, generation: true },
);

export const isPodReady = (_pod: ApiObject): boolean => true;
