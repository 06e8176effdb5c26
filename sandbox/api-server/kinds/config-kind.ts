/** ConfigMaps, including immutable ConfigMaps. */
import { isDeepStrictEqual } from 'node:util';
import { cause } from '../failure.ts';
import { builtinKind } from './builtin-kind.ts';
import * as shape from './builtin-shape.ts';

const KEY = /^[-._a-zA-Z0-9]{1,253}$/;
const FAULT =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

export const configMapKind = builtinKind(
  { group: '', version: 'v1', plural: 'configmaps', namespaced: true },
  shape.configMap,
  {
    shortNames: ['cm'],
    unconditionalUpdate: true,
    validate(map, old) {
      const data = (map['data'] ?? {}) as Record<string, string>;
      const faults = Object.keys(data).filter((key) => !KEY.test(key));
      const causes = faults.map((key) => cause.invalid(`data[${key}]`, key, FAULT));
      const isClosed = old?.['immutable'] === true && !isDeepStrictEqual(old['data'], map['data']);
      return isClosed
        ? [...causes, cause.forbidden('data', 'field is immutable when `immutable` is set')]
        : causes;
    },
  },
);
