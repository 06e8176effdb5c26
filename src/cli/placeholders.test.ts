/** Shows that `refit validate` recognizes files with placeholders, which another tool must replace first. */
import { expect, test } from 'vitest';
import { placeholdersInUrls, withPlaceholder } from './placeholders.ts';

test.each<[string, string | undefined]>([
  ['"${KUBE_VERSION}" is not a label value', '${KUBE_VERSION}'],
  ['"v1-${kube:=1.36}" is not a version', '${kube:=1.36}'],
  ['"{{ .Values.version }}" is not a version', '{{ .Values.version }}'],
  ['"v1.36" is not a version', undefined],
  ['"$(LATEST_VERSION)" is not a version', undefined],
  ['"${" is not a version, "}" neither is', undefined],
])('the problem %s names the placeholder %s', (problem, found) => {
  const advice = `; ${found} is a placeholder, so check the file after your tool has replaced it`;
  expect(withPlaceholder(problem)).toBe(found === undefined ? problem : `${problem}${advice}`);
});

test('a placeholder in a URL is a warning, because such a URL is well formed', () => {
  const object = {
    metadata: { name: 'a', annotations: { docs: 'https://example.com/${page}' } },
    spec: {
      channel: 'https://example.com/${channel}',
      urls: ['https://example.com/v1', 'http://{{ .Values.host }}/v1'],
      args: ['echo ${HOME}', 1, null],
    },
  };
  const advice = 'is a placeholder, so check the file after your tool has replaced it';
  expect(placeholdersInUrls(object)).toEqual([
    `spec.channel: "https://example.com/\${channel}": \${channel} ${advice}`,
    `spec.urls[1]: "http://{{ .Values.host }}/v1": {{ .Values.host }} ${advice}`,
  ]);
});
