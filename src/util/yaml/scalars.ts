/**
 * Defines what unquoted YAML text means to kubectl. These are the rules of sigs.k8s.io/yaml, which
 * are neither YAML 1.1 nor YAML 1.2.
 */
import type { ScalarTag } from 'yaml';

const NULL = /^(?:~|null|Null|NULL)?$/;
const TRUE = /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON)$/;
const FALSE = /^(?:n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/;
const NO_JSON_NUMBER = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;
const LIKE_A_NUMBER = /^[-+.\d]/;

/**
 * Matches an underscore that is not between two digits. In a value that starts with a point, such an underscore makes
 * the value a text. Other underscores do not prevent that a value is a number.
 */
const MISPLACED_UNDERSCORE = /(?<!\d)_|_(?!\d)/;
const LEGACY_OCTAL = /^0[0-7]+$/;
const INTEGER = /^(?:0[xX][\da-fA-F]+|0[oO][0-7]+|0[bB][01]+|0|[1-9]\d*)$/;
const FLOAT = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;

/**
 * Returns the number that `text` represents, or `text` itself if it is not a number. `0o17` and `017` are 15, and
 * `1_000` is 1000. Times, dates and MAC addresses remain text: unlike in YAML 1.1, no number contains a colon.
 */
function numberOrText(text: string): number | string {
  const isStrict = text.startsWith('.') && MISPLACED_UNDERSCORE.test(text);
  const plain = isStrict ? text : text.replaceAll('_', '');
  const negative = plain.startsWith('-');
  const digits = plain.replace(/^[-+]/, '');
  const size = sizeOf(digits);
  if (size !== undefined) return negative && size !== 0 ? -size : size;
  const float = FLOAT.test(plain) ? Number(plain) : Number.NaN;
  return Number.isFinite(float) ? float : text;
}

function sizeOf(digits: string): number | undefined {
  if (LEGACY_OCTAL.test(digits)) return Number(`0o${digits}`);
  return INTEGER.test(digits) ? Number(digits) : undefined;
}

const CORE = 'tag:yaml.org,2002:';

/**
 * The scalars of a schema that otherwise has only texts, lists and mappings. There are no
 * timestamps, because kubectl leaves them as text.
 */
export const KUBECTL_SCALARS: ScalarTag[] = [
  { tag: `${CORE}null`, default: true, test: NULL, resolve: () => null },
  { tag: `${CORE}bool`, default: true, test: TRUE, resolve: () => true },
  { tag: `${CORE}bool`, default: true, test: FALSE, resolve: () => false },
  {
    tag: `${CORE}float`,
    default: true,
    test: NO_JSON_NUMBER,
    resolve: (text, onError) => {
      onError(
        `${text} is not a number in JSON, and kubectl refuses it; if it is a text, put it in quotes`,
      );
      return text;
    },
  },
  { tag: `${CORE}float`, default: true, test: LIKE_A_NUMBER, resolve: numberOrText },
  { tag: `${CORE}int`, resolve: numberOrText },
  {
    tag: `${CORE}binary`,
    resolve: (text) => Buffer.from(text, 'base64').toString(),
  },
];
