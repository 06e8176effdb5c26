/** Tests that the explorer finds the planted mistakes that it finds only after many states. */
import { isFoundSoon, testMistakes } from '../found-mistakes.ts';
import { MISTAKES } from '../mistakes.ts';

testMistakes(MISTAKES.filter((mistake) => !isFoundSoon(mistake)));
