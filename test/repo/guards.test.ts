/**
 * Tests that the threat model, the scripts for kubeadm hosts and the attacks have the same guards, and that each check
 * in the scripts is a guard or names the guard that backs it.
 */
import { expect, test } from 'vitest';
import { GUARDS } from '../attacks/kubeadm-guards.ts';
import { filesOf } from './tree.ts';

const FOLDER = 'src/dialects/kubeadm/host/scripts/';
const SCRIPTS = filesOf(`${FOLDER}**/*.sh`).map(({ path, text }) => ({
  path: path.slice(FOLDER.length),
  text,
}));
const PAGE = filesOf('docs/internals/threat-model.md')
  .map(({ text }) => text)
  .join('');

const MARK = /^\s*# (Guard|Backed by) ([a-z-]+)\. /;
/** The calls that decide whether root may run, trust or replace a file. */
const CHECKS = [
  /\$\((untrusted|wrong) /,
  /\b(is_hash|is_recorded|is_whole) (?!.*\(\))/,
  /\bothers_write "/,
  /\[ "\$owner" /,
  /\$mode & /,
  /"\$\(sha256sum <"\$2"\)" =/,
  /^umask /,
  /chmod 700 "\$D"/,
  /^refuse_untrusted$/,
];
/** Lines that look like a check of their own, each with the reason why they are none. */
const NO_GUARDS: Readonly<Record<string, string>> = {
  'parts/static-pods.sh: ! is_hash kept "$name" "$now" || continue':
    'nothing is done to a manifest that is right already',
  'parts/static-pods.sh: ! is_hash kept "$1" "$now" || return 0':
    'nothing is done to a manifest that is right already',
  'parts/trusted.sh: [ $((0$mode & 16)) != 0 ] && [ "$group" != "$(id -g)" ] && ! is_empty_staff "$group" || return 1':
    'the second half of the guard path-mode, which has a planted weakness for it',
};

/** Returns the check lines of a script without a mark in the comment above, as `path: line`. */
function unmarked(path: string, text: string): string[] {
  const lines = text.split('\n');
  return lines.flatMap((line, at) => {
    if (/^\s*#/.test(line) || !CHECKS.some((check) => check.test(line))) return [];
    // A command may begin on an earlier line.
    const first = lines.slice(0, at).findLastIndex((each) => !/(&&|\|\||\\)$/.test(each)) + 1;
    const above = lines.slice(0, first).findLastIndex((each) => !/^\s*#/.test(each));
    const isMarked = lines.slice(above + 1, first).some((each) => MARK.test(each));
    const shown = `${path}: ${line.trim()}`;
    return isMarked || Object.hasOwn(NO_GUARDS, shown) ? [] : [shown];
  });
}

const marks = (kind: string): string[] =>
  SCRIPTS.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line) => {
      const [, found, name] = MARK.exec(line) ?? [];
      return found === kind ? [`${name} ${path}`] : [];
    }),
  );

test('the threat model, the scripts and the attacks name the same guards', () => {
  const attacked = GUARDS.map(({ name, file }) => `${name} ${file}`).toSorted();
  expect(attacked).not.toEqual([]);
  expect(marks('Guard').toSorted()).toEqual(attacked);
  const rows = [...PAGE.matchAll(/^\| `([a-z-]+)` \| `([\w./-]+\.sh)` \| \S.* \|$/gm)];
  expect(rows.map(([, name, file]) => `${name} ${file}`).toSorted()).toEqual(attacked);
});

test('the check of each guard follows the comment that names the guard', () => {
  for (const { name, file, check } of GUARDS) {
    const text = SCRIPTS.find(({ path }) => path === file)?.text ?? '';
    const at = text.indexOf(`# Guard ${name}. `);
    const after = text.slice(at).split('\n').slice(1, 5).join('\n');
    expect(`${name}: ${after}`).toContain(check);
  }
});

test('each guard has at least one planted weakness, and a check that backs nothing is no guard', () => {
  expect(GUARDS.filter(({ planted }) => Object.keys(planted).length === 0)).toEqual([]);
  const names = GUARDS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  const backed = marks('Backed by').map((mark) => mark.split(' ', 1)[0] ?? '');
  expect(backed.filter((name) => !names.includes(name))).toEqual([]);
});

test('each check in the scripts is a guard, or names the guard that backs it', () => {
  expect(SCRIPTS.flatMap(({ path, text }) => unmarked(path, text))).toEqual([]);
});

test('a check without a mark is found', () => {
  const check = '  problem=$(untrusted "$1")';
  expect(unmarked('a.sh', `# A file.\n${check}\n`)).toEqual([`a.sh: ${check.trim()}`]);
  expect(unmarked('a.sh', `  # Guard here. Why.\n${check}\n`)).toEqual([]);
});
