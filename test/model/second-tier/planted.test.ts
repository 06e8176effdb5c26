/** Tests that the explorer finds the planted mistakes that take it many states. */
import { isFoundSoon, testMistakes } from '../found-mistakes.ts';
import { MISTAKES } from '../mistakes.ts';

testMistakes(MISTAKES.filter((mistake) => !isFoundSoon(mistake)));
